"""The script that folds a batch into Redis, which runs it alone and as one step, and what all scripts share.

Positions are written last: should Redis fail half way, the batch is read and folded again. Versions are compared as
two halves, because Lua's numbers hold 53 bits, and never as text, because Lua's order of text is the locale's; levels
have no rows beyond 53 bits (`growth.SAFE`), so there numbers will do.

    counts            hash    format, keys, tiles, bytes, levels; damaged or emptying while it is
    layouts           hash    a tile set's layout
    expired           hash    a run's start before which tiles may be missing
    tiles:<prefix>    zset    the tiles of a key, in the order of their bytes
    levels:<prefix>   zset    its level rows, and at the end its growth
    base:<prefix>     string  its base, after the start before which on-time tiles are in it
"""

from __future__ import annotations

DONE, MOVED, OTHER_FORMAT, OTHER_LAYOUT, EMPTYING, DAMAGED = 0, 1, 2, 3, 4, 5

SHARED = """
local LAST = string.rep('\\255', 8) .. '~\\0'
local function number(bytes)
  local high, low = struct.unpack('>I4I4', bytes)
  return (high - 2147483648) * 4294967296 + low
end
local function bytes(number)
  local high = math.floor(number / 4294967296)
  return struct.pack('>I4I4', high + 2147483648, number - high * 4294967296)
end
local function first(zset, from, to)
  return redis.call('ZRANGEBYLEX', zset, from, to, 'LIMIT', 0, 1)[1]
end

-- A key's growth: where levels end and where they are known to be made up to, new tiles, the last claim, holes.
local function read_growth(levels)
  local found = first(levels, '[' .. LAST, '+')
  if not found then return nil end
  local said = string.sub(found, 19)
  if string.sub(redis.sha1hex(said), 1, 8) ~= string.sub(found, 11, 18) then return nil, true end
  local growth = { member = found, reached = string.sub(said, 1, 8), made = string.sub(said, 9, 16) }
  growth.fresh = struct.unpack('>I4', said, 17)
  growth.claim, growth.holes = string.sub(said, 21, 28), string.sub(said, 29)
  return growth
end
local function write_growth(levels, growth)
  local said = growth.reached .. growth.made .. struct.pack('>I4', growth.fresh) .. growth.claim .. growth.holes
  local member = LAST .. string.sub(redis.sha1hex(said), 1, 8) .. said
  if member ~= growth.member then
    if growth.member then redis.call('ZREM', levels, growth.member) end
    redis.call('ZADD', levels, 0, member)
  end
end
local function floored(place, width)
  local rest = math.fmod(place, width)
  if rest < 0 then rest = rest + width end
  return place - rest
end
local function has_hole(growth, low, high)
  for at = 1, #growth.holes, 8 do
    local hole = number(string.sub(growth.holes, at, at + 7))
    if low <= hole and hole < high then return true end
  end
  return false
end
"""

APPLY = (
    SHARED
    + """
-- KEYS  counts, positions, layouts, expired, then the tiles of each changed tile's key, one for each change about a run
-- ARGV  format
--       what the keys of tiles, of levels and of bases begin with
--       how many partitions are expected (-1: whatever there is), then partition and offset of each
--       how many partitions are set, then partition and offset of each
--       from how many tiles on a key gets levels, and how many holes are made again together
--       how many runs, then tile set, name in `expired`, layout as it is kept, 1 for bases, how many widths, and these
--       how many tiles change, then number of the run, place, whether to forget what is stored, version + value or none
--       how many changes about runs, then run, and what is said of it or nothing
local counts, positions, layouts, expired = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local last_key, last = 4, 0
local function key() last_key = last_key + 1; return KEYS[last_key] end
local function given() last = last + 1; return ARGV[last] end

local format = given()
local known = redis.call('HGET', counts, 'format')
if known and known ~= format then return {2} end
if redis.call('HEXISTS', counts, 'emptying') == 1 then return {4} end

local names_of_tiles, names_of_levels, names_of_bases = given(), given(), given()
local expected = tonumber(given())
local same = expected < 0 or redis.call('HLEN', positions) == expected
for _ = 1, expected do
  local partition, offset = given(), given()
  same = same and redis.call('HGET', positions, partition) == offset
end
if not same then return {1} end

local reached = {}
for _ = 1, 2 * tonumber(given()) do reached[#reached + 1] = given() end

local enough, most_holes = tonumber(given()), tonumber(given())
local runs = {}
for at = 1, tonumber(given()) do
  local tile_set, run, layout, bases = given(), given(), given(), given()
  if (redis.call('HGET', layouts, tile_set) or '') ~= layout then return {3} end
  local before = redis.call('HGET', expired, run)
  runs[at] = { widths = {}, bases = bases == '1', expired = before and number(before) }
  for _ = 1, tonumber(given()) do table.insert(runs[at].widths, tonumber(given())) end
end

local keys, tiles, size_of_all, levels_of_all = 0, 0, 0, 0
local growths, order, due = {}, {}, {}

-- Whether a tile is still kept one by one. A tombstone of one that is in a base is of a run that is removed as a whole.
local function wanted(run, tiles_of_key, base_of_key, place, row)
  local tile = number(place)
  if not run.expired or tile >= run.expired then return true end
  local base = redis.call('GETRANGE', base_of_key, 0, 7)
  if base == '' then return row == '' or run.bases end
  if string.sub(place, 9) ~= 'on_time\\0' or tile >= number(base) then return true end
  if row == '' then
    redis.call('DEL', base_of_key)
    if redis.call('EXISTS', tiles_of_key) == 0 then keys = keys - 1 end
  end
  return false
end

local function touch(run, tiles_of_key, levels_of_key, place, born)
  local cut = run.widths
  if #cut == 0 then return end
  local growth = growths[levels_of_key]
  if growth == nil then
    local damaged
    growth, damaged = read_growth(levels_of_key)
    if damaged then return true end
    growths[levels_of_key] = growth or false
    order[#order + 1] = levels_of_key
  end
  if not growth then
    local card = born and redis.call('ZCARD', tiles_of_key) or 0
    if card < enough then return end
    growth = { reached = string.rep('\\0', 8), made = string.rep('\\0', 8), fresh = card - 1,
               claim = string.rep('\\0', 8), holes = '' }
    growths[levels_of_key] = growth
  end
  growth.tiles = tiles_of_key
  if born then growth.fresh = growth.fresh + 1 end
  local tile = number(place)
  if tile < number(growth.reached) then
    local hole = bytes(floored(tile, cut[1]))
    if not has_hole(growth, number(hole), number(hole) + 1) then growth.holes = growth.holes .. hole end
    for level, width in ipairs(cut) do
      local row = bytes(floored(tile, width)) .. '\\1' .. string.char(126 - level) .. '\\0'
      local found = first(levels_of_key, '[' .. row, '+')
      if found and string.sub(found, 1, 11) == row then
        redis.call('ZREM', levels_of_key, found)
        levels_of_all = levels_of_all - 1
      end
    end
  end
end

for _ = 1, tonumber(given()) do
  local tiles_of_key = key()
  local name = string.sub(tiles_of_key, #names_of_tiles + 1)
  local levels_of_key, base_of_key = names_of_levels .. name, names_of_bases .. name
  local run, place, forget, row = runs[tonumber(given())], given(), given(), given()
  local size, changed, born = #place, false, false
  local takes = wanted(run, tiles_of_key, base_of_key, place, row)
  local found = first(tiles_of_key, '[' .. place, '+')
  if found and string.sub(found, 1, size) ~= place then found = nil end
  if not takes then
    found = nil
  elseif row == '' then
    if found then
      redis.call('ZREM', tiles_of_key, found)
      tiles, size_of_all, changed = tiles - 1, size_of_all - #found, true
      if redis.call('EXISTS', tiles_of_key, base_of_key) == 0 then keys = keys - 1 end
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
      size_of_all, changed = size_of_all + #member, true
      if found then
        redis.call('ZREM', tiles_of_key, found)
        size_of_all = size_of_all - #found
      else
        tiles, born = tiles + 1, true
        if redis.call('ZCARD', tiles_of_key) == 1 and redis.call('EXISTS', base_of_key) == 0 then keys = keys + 1 end
      end
    end
  end
  if changed and touch(run, tiles_of_key, levels_of_key, string.sub(place, 1, 8), born) then return {5} end
end

for _, levels_of_key in ipairs(order) do
  local growth = growths[levels_of_key]
  if growth then
    if redis.call('EXISTS', growth.tiles) == 0 then
      redis.call('DEL', levels_of_key)
    else
      write_growth(levels_of_key, growth)
      if growth.fresh >= enough or #growth.holes >= 8 * most_holes then due[#due + 1] = growth.tiles end
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
redis.call('HINCRBY', counts, 'bytes', size_of_all)
redis.call('HINCRBY', counts, 'levels', levels_of_all)
for at = 1, #reached, 2 do redis.call('HSET', positions, reached[at], reached[at + 1]) end
return {0, due}
"""
)
