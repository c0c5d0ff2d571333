"""The script that reads keys from Redis: everything that an answer needs, of one moment, in one command.

A range is covered as `levels.cover` does it, with level rows from one sorted set and tiles from the other.
"""

from __future__ import annotations

from headrace.store.redis.script import SHARED

READ = (
    SHARED
    + """
-- KEYS  counts, layouts, expired, progress, hand-overs, then tiles, levels and base of each key
-- ARGV  tile set, run's name in `expired`, layout as the reader knows it
--       how many widths, and these; how many bands, then low and high as bytes and the coarsest level of each
-- Back come progress, hand-overs, the layout, what has expired, and of each key whether it is there, base and rows.
local tile_set, run, layout, last = ARGV[1], ARGV[2], ARGV[3], 3
local function given() last = last + 1; return ARGV[last] end
if redis.call('HEXISTS', KEYS[1], 'emptying') == 1 then return {{}, {}, '', '', 1} end
local known = redis.call('HGET', KEYS[2], tile_set) or ''
local usable = layout ~= '' and known == layout

local widths, bands = {}, {}
for _ = 1, tonumber(given()) do widths[#widths + 1] = tonumber(given()) end
for _ = 1, tonumber(given()) do
  local low, high, coarsest = given(), given(), tonumber(given())
  local band = { low = low, high = high, from = number(low), to = high == '' and math.huge or number(high) }
  band.cut = {}
  for level = 1, math.min(coarsest, #widths) do
    if widths[level] <= band.to - band.from then band.cut[level] = widths[level] end
  end
  bands[#bands + 1] = band
end

local function fitting(place, band)
  for level = #band.cut, 1, -1 do
    local width = band.cut[level]
    if math.fmod(place, width) == 0 and place + width <= band.to then return level end
  end
  return 0
end

local function cover(tiles, levels, band, found)
  local till = band.high == '' and '+' or '(' .. band.high
  local function tiles_between(from, to)
    for _, member in ipairs(redis.call('ZRANGEBYLEX', tiles, '[' .. from, to)) do found[#found + 1] = member end
  end
  if not levels or #band.cut == 0 then return tiles_between(band.low, till) end
  local at, from = band.from, band.low
  while at < band.to do
    local fit = fitting(at, band)
    local target = from .. (fit > 0 and '\\1' .. string.char(126 - fit) or '\\2')
    local row = first(levels, '[' .. target, till)
    if not row or string.byte(row, 9) ~= 1 then return tiles_between(from, till) end
    local begin, level = string.sub(row, 1, 8), 126 - string.byte(row, 10)
    local start = number(begin)
    if start > at then tiles_between(from, '(' .. begin) end
    if level <= #band.cut and start + widths[level] <= band.to then
      found[#found + 1] = row
      at = start + widths[level]
      from = bytes(at)
    else
      at, from = start, begin
      if fitting(at, band) == 0 then
        -- No row that begins here fits: its tiles are read up to where the next one begins.
        local later = first(levels, '(' .. begin .. '\\2', till)
        if not later or string.byte(later, 9) ~= 1 then return tiles_between(from, till) end
        tiles_between(from, '(' .. string.sub(later, 1, 8))
        from = string.sub(later, 1, 8)
        at = number(from)
      end
    end
  end
end

local expired = redis.call('HGET', KEYS[3], run) or ''
local answer = { redis.call('HGETALL', KEYS[4]), redis.call('HGETALL', KEYS[5]), known, expired,
  redis.call('HEXISTS', KEYS[1], 'filling') }
for at = 6, #KEYS, 3 do
  local tiles, levels = KEYS[at], KEYS[at + 1]
  local base = expired ~= '' and redis.call('GET', KEYS[at + 2]) or ''
  local there = redis.call('EXISTS', tiles)
  local found = { (there == 1 or base ~= '') and 1 or 0, base }
  if there == 1 then
    local with = usable and redis.call('EXISTS', levels) == 1 and levels
    for _, band in ipairs(bands) do cover(tiles, with, band, found) end
  end
  answer[#answer + 1] = found
end
return answer
"""
)
