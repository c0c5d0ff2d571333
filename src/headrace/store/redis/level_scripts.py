"""The scripts that make and remove level rows and bases in Redis; `redis_levels` and `redis_expire` run them."""

from __future__ import annotations

from headrace.store.redis.script import SHARED

CLAIM = (
    SHARED
    + """
-- KEYS  layouts, tiles and levels of a key
-- ARGV  tile set, layout, the claim's name (eight bytes), from how many new tiles at most, from how many it is due
-- Back come where levels were made up to, where they are to be, whether there is more, and the holes.
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return {3} end
local tiles, levels = KEYS[2], KEYS[3]
local growth, damaged = read_growth(levels)
if damaged then return {5} end
local newest = redis.call('ZREVRANGEBYLEX', tiles, '+', '-', 'LIMIT', 0, 1)[1]
if not newest then return {1} end
if not growth then
  growth = { reached = string.rep('\\0', 8), made = string.rep('\\0', 8) }
end
local further = redis.call('ZRANGEBYLEX', tiles, '[' .. growth.made, '+', 'LIMIT', ARGV[4], 1)[1]
local till = string.sub(further or newest, 1, 8)
local made, holes = growth.made, growth.holes or ''
if number(till) > number(growth.reached) then growth.reached = till end
growth.fresh = further and tonumber(ARGV[5]) or 0
growth.claim, growth.holes = ARGV[3], ''
write_growth(levels, growth)
return {0, made, till, further and 1 or 0, holes}
"""
)

WRITE = (
    SHARED
    + """
-- KEYS  counts, layouts, levels of a key
-- ARGV  tile set, layout, the claim's name, where levels are made up to now
--       then place, width and value of each row
if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then return 0 end
local levels, more = KEYS[3], 0
local growth = read_growth(levels)
if not growth or growth.claim ~= ARGV[3] then return 0 end
for at = 5, #ARGV, 3 do
  local place, width, value = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2]
  local start = number(place)
  if not has_hole(growth, start, start + width) then
    local found = first(levels, '[' .. place, '+')
    if found and string.sub(found, 1, #place) == place then
      redis.call('ZREM', levels, found)
      more = more - 1
    end
    redis.call('ZADD', levels, 0, place .. value)
    more = more + 1
  end
end
growth.made = ARGV[4]
write_growth(levels, growth)
redis.call('HINCRBY', KEYS[1], 'levels', more)
return 1
"""
)

DROP = """
-- KEYS  counts, then keys of level rows that go
for at = 2, #KEYS do
  local rows = redis.call('ZCARD', KEYS[at])
  if rows > 0 then redis.call('HINCRBY', KEYS[1], 'levels', 1 - rows) end
  redis.call('UNLINK', KEYS[at])
end
"""

EXPIRE = """
-- KEYS  counts, expired, tiles, levels and base of a key
-- ARGV  run's name in `expired`, the start before which tiles go
--       where there are bases: the base as it was read, the base to be, and the tiles that are in it
local counts, expired, tiles, levels, base = unpack(KEYS)
local run, before = ARGV[1], ARGV[2]
local gone, bytes = {}, 0
if #ARGV == 2 then
  gone = redis.call('ZRANGEBYLEX', tiles, '-', '(' .. before)
else
  if (redis.call('GET', base) or '') ~= ARGV[3] then return 0 end
  for at = 5, #ARGV do
    if not redis.call('ZSCORE', tiles, ARGV[at]) then return 0 end
    gone[#gone + 1] = ARGV[at]
  end
  redis.call('SET', base, ARGV[4])
end
for _, member in ipairs(gone) do
  bytes = bytes + #member
  redis.call('ZREM', tiles, member)
end
local rows = redis.call('ZREMRANGEBYLEX', levels, '-', '(' .. before)
if redis.call('EXISTS', tiles) == 0 then redis.call('DEL', levels) end
if redis.call('EXISTS', tiles, base) == 0 then redis.call('HINCRBY', counts, 'keys', -1) end
redis.call('HINCRBY', counts, 'tiles', 0 - #gone)
redis.call('HINCRBY', counts, 'bytes', 0 - bytes)
redis.call('HINCRBY', counts, 'levels', 0 - rows)
local known = redis.call('HGET', expired, run)
local function halves(text) return struct.unpack('>I4I4', text) end
if known then
  local high, low = halves(before)
  local known_high, known_low = halves(known)
  if known_high > high or (known_high == high and known_low >= low) then return #gone end
end
redis.call('HSET', expired, run, before)
return #gone
"""
