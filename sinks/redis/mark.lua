-- Moves the marks in the target's hash forward, never back.
-- KEYS  the target's hash
-- ARGV  the incarnation that must be there, then pairs of a field and a number
-- Returns 1, or 0 where the target is another or gone.
if redis.call('HGET', KEYS[1], 'incarnation') ~= ARGV[1] then
  return 0
end
for i = 2, #ARGV, 2 do
  local held = tonumber(redis.call('HGET', KEYS[1], ARGV[i]) or '-1')
  if held < tonumber(ARGV[i + 1]) then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  end
end
return 1
