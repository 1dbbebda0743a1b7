-- Answers for each lane its name, how many wait, are leased, dead and done, and for how many ms the oldest due one has waited.
local now = clock()
local answer = {}

local function done(lane)
  if WINDOW == 0 then return tonumber(redis.call('HGET', KEYS[1] .. 'counts', 'done:' .. lane) or 0) end
  local part, sum = sixtieth(WINDOW), 0
  for n = math.floor((now - WINDOW) / part), math.floor(now / part) do
    sum = sum + tonumber(redis.call('GET', key('done', lane .. ':' .. n)) or 0)
  end
  return sum
end

for _, lane in ipairs(redis.call('SMEMBERS', KEYS[1] .. 'lanes')) do
  local line, later, leases = key('line', lane), key('later', lane), key('leases', lane)
  local pending, last = 0, '-'
  if redis.call('EXISTS', line) == 1 then
    for _, group in ipairs(redis.call('XINFO', 'GROUPS', line)) do
      local info = {}
      for i = 1, #group, 2 do info[group[i]] = group[i + 1] end
      if info.name == GROUP then pending, last = info.pending, '(' .. info['last-delivered-id'] end
    end
  end
  local oldest = now
  local next = redis.call('XRANGE', line, last, '+', 'COUNT', 1)
  if next[1] then
    local at = redis.call('HGET', key('job', next[1][2][2]), 'at') or string.match(next[1][1], '^%d+')
    oldest = math.min(oldest, tonumber(at))
  end
  for _, times in ipairs({later, leases}) do
    local first = redis.call('ZRANGE', times, 0, 0, 'WITHSCORES')
    if first[1] then oldest = math.min(oldest, tonumber(first[2])) end
  end
  local lapsed = redis.call('ZCOUNT', leases, '-inf', now)
  local dead = tonumber(redis.call('HGET', KEYS[1] .. 'counts', 'dead:' .. lane) or 0)
  answer[#answer + 1] = {lane, redis.call('XLEN', line) - pending + redis.call('ZCARD', later) + lapsed, pending - lapsed, dead, done(lane), now - oldest}
end
return answer
