-- Puts or deletes one row, unless a newer version is there.
-- KEYS  the row's key, its version key
-- ARGV  version (16 hex digits), owner ("target stream table"), kind (hash, string or delete),
--       the type that the key may have, time to live of the row in ms (0: for ever),
--       of the version in ms (0: for ever), then the content
-- Returns 1, or the version that is there where it is newer.
--
-- Redis refuses commands for want of memory only before a script's first write. So a put
-- begins with the version, which may be refused and then nothing has changed; a delete
-- begins with DEL, which never is, so deletes go on when memory is full.
local key, versionKey = KEYS[1], KEYS[2]
local version, owner, kind, type = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local rowLife, versionLife = tonumber(ARGV[5]), ARGV[6]

local held = redis.call('GET', versionKey)
if held then
  held = string.sub(held, 1, 16)
  if #held < 16 or string.find(held, '[^0-9a-f]') then
    return redis.error_reply('BADVERSION ' .. versionKey .. ' holds no version of Daybook')
  end
  if held > version then
    return held
  end
end

-- A key with a version is ours, whatever it holds: the sink's type may have changed.
local found = redis.call('TYPE', key).ok
if not held and found ~= 'none' and found ~= type then
  return redis.error_reply('WRONGTYPE the key holds a ' .. found .. ', not a ' .. type)
end

local function keepVersion()
  if versionLife == '0' then
    redis.call('SET', versionKey, version .. ' ' .. owner)
  else
    redis.call('SET', versionKey, version .. ' ' .. owner, 'PX', versionLife)
  end
end

if kind == 'delete' then
  redis.call('DEL', key)
  keepVersion()
  return 1
end

keepVersion()
if kind == 'string' then
  redis.call('SET', key, ARGV[7])
else
  redis.call('DEL', key)
  -- Lua's stack bounds how many arguments a call can have.
  for i = 7, #ARGV, 2000 do
    redis.call('HSET', key, unpack(ARGV, i, math.min(i + 1999, #ARGV)))
  end
end
if rowLife > 0 then
  redis.call('PEXPIRE', key, rowLife)
end
return 1
