-- Restarts the holder's lease, also one that has run out and was not taken over.
--
-- KEYS[1]  the record, see claim.lua
-- ARGV     token (16 bytes), lease (ms), keep (ms)
-- Answer   1 renewed, 0 lease lost, -1 processed by this token
local token, lease, keep = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
if #ARGV ~= 3 or #token ~= 16 or not lease or not keep or lease < 1 or keep < lease then
  return redis.error_reply('ERR webhook_dedup: invalid argument')
end
local r = redis.call('HMGET', KEYS[1], 's', 't')
if r[2] ~= token then return 0 end
if r[1] == '2' then return -1 end
if r[1] ~= '1' then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[1], 'd', now + lease, 'l', lease, 'm', now)
redis.call('PEXPIRE', KEYS[1], keep)
return 1
