"""The one thing that writes to Redis: a script that folds a batch in, which Redis runs alone and as one step.

Positions are written last: should Redis fail half way, the batch is read and folded again. Versions are compared as
two halves, because Lua's numbers hold 53 bits, and never as text, because Lua's order of text is the locale's.

    KEYS  counts, positions, one for each changed tile, one for each change about a run
    ARGV  format
          how many partitions are expected (-1: whatever there is), then partition and offset of each
          how many partitions are set, then partition and offset of each
          how many tiles change, then place, whether to forget what is stored, and version + value or nothing
          how many changes about runs, then run, and what is said of it or nothing
"""

from __future__ import annotations

DONE, MOVED, OTHER_FORMAT = 0, 1, 2

APPLY = """
local counts, positions = KEYS[1], KEYS[2]
local last_key, last = 2, 0
local function key() last_key = last_key + 1; return KEYS[last_key] end
local function given() last = last + 1; return ARGV[last] end

local format = given()
local known = redis.call('HGET', counts, 'format')
if known and known ~= format then return 2 end

local expected = tonumber(given())
local same = expected < 0 or redis.call('HLEN', positions) == expected
for _ = 1, expected do
  local partition, offset = given(), given()
  same = same and redis.call('HGET', positions, partition) == offset
end
if not same then return 1 end

local reached = {}
for _ = 1, 2 * tonumber(given()) do reached[#reached + 1] = given() end

local keys, tiles, bytes = 0, 0, 0
for _ = 1, tonumber(given()) do
  local tiles_of_key, place, forget, row = key(), given(), given(), given()
  local size = #place
  local found = redis.call('ZRANGEBYLEX', tiles_of_key, '[' .. place, '+', 'LIMIT', 0, 1)[1]
  if found and string.sub(found, 1, size) ~= place then found = nil end
  if row == '' then
    if found then
      redis.call('ZREM', tiles_of_key, found)
      tiles, bytes = tiles - 1, bytes - #found
      if redis.call('EXISTS', tiles_of_key) == 0 then keys = keys - 1 end
    end
  else
    local older = false
    if found and forget == '0' then
      local high, low = struct.unpack('>I4I4', row)
      local held_high, held_low = struct.unpack('>I4I4', found, size + 1)
      older = high < held_high or (high == held_high and low < held_low)
    end
    local member = place .. row
    if not older and member ~= found then
      redis.call('ZADD', tiles_of_key, 0, member)
      bytes = bytes + #member
      if found then
        redis.call('ZREM', tiles_of_key, found)
        bytes = bytes - #found
      else
        tiles = tiles + 1
        if redis.call('ZCARD', tiles_of_key) == 1 then keys = keys + 1 end
      end
    end
  end
end

for _ = 1, tonumber(given()) do
  local about, run, said = key(), given(), given()
  if said == '' then redis.call('HDEL', about, run) else redis.call('HSET', about, run, said) end
end

redis.call('HSET', counts, 'format', format)
redis.call('HINCRBY', counts, 'keys', keys)
redis.call('HINCRBY', counts, 'tiles', tiles)
redis.call('HINCRBY', counts, 'bytes', bytes)
for at = 1, #reached, 2 do redis.call('HSET', positions, reached[at], reached[at + 1]) end
return 0
"""
