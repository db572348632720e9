-- Asks for the right to process a key.
--
-- KEYS[1]  the record, a hash: s state (1 processing, 2 processed, 3 failed), t token, d lease deadline and l lease length,
--          f first seen and m last change (ms), a attempts, n duplicates, e event type, u status, h digest, b response, o original ID;
--          a response of middle size stands in c pieces b1, b2 … instead, see complete.lua
-- ARGV     token (16 bytes), lease (ms), keep (ms), event type or empty, digest (32 bytes) or empty,
--          original ID or empty
-- Answer   {outcome, remaining ms, s, t, l, f, m, a, n, e, u, h, b, o} with the record as it is then. Outcome:
--          1 granted, 2 granted again, 3 in flight, 4 duplicate, 5 processed by this token, 6 refused
local token, lease, keep = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
if #ARGV ~= 6 or #token ~= 16 or not lease or not keep or lease < 1 or keep < lease then
  return redis.error_reply('ERR webhook_dedup: invalid argument')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local r = redis.call('HMGET', KEYS[1], 's', 't', 'd', 'l', 'f', 'm', 'a', 'n', 'e', 'u', 'h', 'b', 'o', 'c')
local state, mine = r[1], r[2] == token
if r[14] then
  local pieces = {}
  for i = 1, tonumber(r[14]) do pieces[i] = 'b' .. i end
  r[12] = table.concat(redis.call('HMGET', KEYS[1], unpack(pieces)))
end
local function answer(outcome, remaining)
  return {outcome, remaining, r[1], r[2], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11], r[12], r[13]}
end

if state == '2' then
  if mine then return answer(5, 0) end
  -- A server that is full or read-only cannot count, and answers the duplicate all the same.
  local counted = redis.pcall('HINCRBY', KEYS[1], 'n', 1)
  if type(counted) == 'number' then r[8] = counted end
  return answer(4, 0)
end
if state == '3' and mine then return answer(6, 0) end
if state == '1' and not mine then
  local remaining, length = r[3] - now, tonumber(r[4])
  if remaining > length then
    -- The clock was set back: that costs one lease, not the whole difference.
    remaining = length
    redis.pcall('HSET', KEYS[1], 'd', now + length)
  end
  if remaining > 0 then return answer(3, remaining) end
end

local again = state == '1' and mine
r[1], r[2], r[4], r[6] = '1', token, lease, now
r[5] = r[5] or now
r[7] = tonumber(r[7] or 0)
if not again then r[7] = r[7] + 1 end
local set = {'s', '1', 't', token, 'd', now + lease, 'l', lease, 'f', r[5], 'm', now, 'a', r[7]}
if ARGV[4] ~= '' then
  r[9] = ARGV[4]
  set[#set + 1] = 'e'
  set[#set + 1] = ARGV[4]
end
if not r[11] and ARGV[5] ~= '' then
  r[11] = ARGV[5]
  set[#set + 1] = 'h'
  set[#set + 1] = ARGV[5]
end
if not r[13] and ARGV[6] ~= '' then
  r[13] = ARGV[6]
  set[#set + 1] = 'o'
  set[#set + 1] = ARGV[6]
end
redis.call('HSET', KEYS[1], unpack(set))
redis.call('PEXPIRE', KEYS[1], keep)
return answer(again and 2 or 1, lease)
