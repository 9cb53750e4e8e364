-- Makes the target's hash if there is none.
-- KEYS  the target's hash
-- ARGV  pairs of a field and a value
-- Returns 1 if it was made, else 0.
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
