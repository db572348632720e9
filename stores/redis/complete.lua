-- Makes a key processed, also where no record is left.
--
-- KEYS[1]  the record, see claim.lua
-- ARGV     token (16 bytes), TTL (ms), status, response or empty, event type or empty, digest (32 bytes) or empty,
--          original ID or empty
-- Answer   1 written, 2 already written by this token, 3 written where no record was,
--          0 lease lost, -1 lease lost and another token's completion stands
local token, ttl = ARGV[1], tonumber(ARGV[2])
if #ARGV ~= 7 or #token ~= 16 or not ttl or ttl < 1 then
  return redis.error_reply('ERR webhook_dedup: invalid argument')
end
local r = redis.call('HMGET', KEYS[1], 's', 't', 'h', 'o')
local state, mine = r[1], r[2] == token
if state == '2' then return mine and 2 or -1 end
if state and (state ~= '1' or not mine) then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local set = {'s', '2', 't', token, 'u', ARGV[3], 'm', now}
local function add(field, value)
  set[#set + 1] = field
  set[#set + 1] = value
end
if not state then
  add('f', now)
  add('a', 1)
end
if ARGV[5] ~= '' then add('e', ARGV[5]) end
if ARGV[6] ~= '' and not r[3] then add('h', ARGV[6]) end
if ARGV[7] ~= '' and not r[4] then add('o', ARGV[7]) end
-- A value over 64 bytes would turn the compact hash into one of three times the size, so a response is cut into such
-- pieces; a long one, beside which that difference is small and reading many pieces is not, stays whole.
local response = ARGV[4]
if #response > 64 and #response <= 2048 then
  local pieces = 0
  for from = 1, #response, 64 do
    pieces = pieces + 1
    add('b' .. pieces, string.sub(response, from, from + 63))
  end
  add('c', pieces)
elseif response ~= '' then
  add('b', response)
end
redis.call('HSET', KEYS[1], unpack(set))
redis.call('HDEL', KEYS[1], 'd', 'l')
redis.call('PEXPIRE', KEYS[1], ttl)
return state and 1 or 3
