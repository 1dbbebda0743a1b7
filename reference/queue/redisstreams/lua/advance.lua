-- advance moves the jobs whose delay or lease is over to the end of the line. Everything that puts a job into a line or takes one out does this first:
-- so each job stands behind all that became due before it.
local function advance(lane, now)
  local later = redis.call('ZRANGEBYSCORE', key('later', lane), '-inf', now, 'WITHSCORES', 'LIMIT', 0, MOVES)
  local lapsed = redis.call('ZRANGEBYSCORE', key('leases', lane), '-inf', now, 'WITHSCORES', 'LIMIT', 0, MOVES)
  local i, j = 1, 1
  while later[i] or lapsed[j] do
    if not lapsed[j] or later[i] and tonumber(later[i + 1]) <= tonumber(lapsed[j + 1]) then
      if redis.call('ZREM', key('later', lane), later[i]) == 1 then -- or it was retired a moment ago, below
        stand(lane, later[i], later[i + 1])
      end
      i = i + 2
    else
      local ref = lapsed[j]
      local h = redis.call('HMGET', key('job', ref), 'entry', 'row', 'state', 'attempt', 'base')
      if h[3] ~= 'leased' then
        redis.call('ZREM', key('leases', lane), ref) -- somebody deleted the job by hand, or it was retired a moment ago
      elseif h[2] and yields(h[2], ref, now) then
        if KEEP > 0 then noteKept(ref, h[4] + (h[5] or 0), math.floor(lapsed[j + 1]), 'lease lapsed') end
      else
        leave(lane, {ref}, {h[1]})
        stand(lane, ref, lapsed[j + 1])
        redis.call('HSET', key('job', ref), 'reason', 'lease lapsed')
        note(ref, 't', h[4] + (h[5] or 0), math.floor(lapsed[j + 1]), 'lease lapsed')
      end
      j = j + 2
    end
  end
end

-- wake moves what became due by what the script did.
local function wake(now)
  local lanes = soon
  soon = {}
  for lane in pairs(lanes) do advance(lane, now) end
end
