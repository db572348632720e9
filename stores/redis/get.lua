-- Reads a record together with what is left of its lease by the server's clock. Changes nothing.
--
-- KEYS[1]  the record, see claim.lua
-- Answer   {0, remaining ms, s, t, l, f, m, a, n, e, u, h, b, o}; s is nil where there is no record
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local r = redis.call('HMGET', KEYS[1], 's', 't', 'd', 'l', 'f', 'm', 'a', 'n', 'e', 'u', 'h', 'b', 'o', 'c')
if r[14] then
  local pieces = {}
  for i = 1, tonumber(r[14]) do pieces[i] = 'b' .. i end
  r[12] = table.concat(redis.call('HMGET', KEYS[1], unpack(pieces)))
end
local remaining = 0
if r[3] and r[4] then remaining = math.max(0, math.min(r[3] - now, tonumber(r[4]))) end
return {0, remaining, r[1], r[2], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11], r[12], r[13]}
