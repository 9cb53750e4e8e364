-- Moves the marks in the target's hash forward, never back.
-- KEYS  the target's hash
-- ARGV  the incarnation that must be there, then for each mark its field, the number that
--       was confirmed to us before, and the number now
-- Returns 1, or 0 where the target is another or gone or a mark is below what was
-- confirmed.
if redis.call('HGET', KEYS[1], 'incarnation') ~= ARGV[1] then
  return 0
end
local numbers = {}
for i = 2, #ARGV, 3 do
  numbers[i] = tonumber(redis.call('HGET', KEYS[1], ARGV[i]) or '0')
  if numbers[i] < tonumber(ARGV[i + 1]) then
    return 0
  end
end
-- Redis refuses for want of memory only a script's first write. This one is never
-- refused and does nothing, so that a batch of deletes gets through when memory is full.
redis.call('HDEL', KEYS[1], '')
for i = 2, #ARGV, 3 do
  if numbers[i] <= tonumber(ARGV[i + 2]) then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 2])
  end
end
return 1
