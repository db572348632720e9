-- Makes a key failed, so that the next claim is granted. Where no record is, a failed one is left that names the token: a
-- claim with it that arrives later is refused.
--
-- KEYS[1]  the record, see claim.lua
-- ARGV     token (16 bytes), keep (ms), status
-- Answer   1 released, 2 already released by this token, 3 nothing was there and the token is void,
--          0 not the holder, -1 processed by this token
local token, keep = ARGV[1], tonumber(ARGV[2])
if #ARGV ~= 3 or #token ~= 16 or not keep or keep < 1 then
  return redis.error_reply('ERR webhook_dedup: invalid argument')
end
local r = redis.call('HMGET', KEYS[1], 's', 't')
local state = r[1]
if state then
  if r[2] ~= token then return 0 end
  if state == '2' then return -1 end
  if state == '3' then return 2 end
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if state then
  redis.call('HSET', KEYS[1], 's', '3', 'u', ARGV[3], 'm', now)
  redis.call('HDEL', KEYS[1], 'd', 'l')
else
  redis.call('HSET', KEYS[1], 's', '3', 't', token, 'u', ARGV[3], 'm', now, 'f', now, 'a', 0)
end
redis.call('PEXPIRE', KEYS[1], keep)
return state and 1 or 3
