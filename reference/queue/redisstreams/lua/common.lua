-- What all scripts share. KEYS[1] is what every key of the queue begins with; its braces keep them on one slot.
--
--   job:REF       hash: body (the event as Go packed it; '' when the job is done), state (none: it never left the line), lane, token, attempt, entry, until,
--                 at, reason. Of a finished job only body and state remain: that its event is known.
--   steps:REF     set: the finished steps of a job that is not done
--   line:LANE     stream: what is due, in the order in which it became due, and what is leased. One consumer group; its pending entries are the leases.
--   leases:LANE   sorted set: when the leases lapse
--   later:LANE    sorted set: when delayed jobs become due
--   dead          stream: the dead letters, oldest first
--   lanes         set: the lanes that ever had a job
--   counts        hash: done:LANE and dead:LANE, how many
--   done:LANE:N   number: how many were done in the Nth sixtieth of a window, where known events are forgotten after one
--
-- Times are milliseconds since 1970 by this server's clock. A number of that size is the largest that Lua turns into a string exactly.
--
-- Redis does not take back what a script did before it failed. Each script therefore does nothing before it knows that it will not fail; with the memory
-- used up its first write is refused, if that write could need memory, and later ones are not.
local GROUP, CONSUMER = 'workers', 'any'
local MOVES = 256 -- how many jobs one script moves to a line at most: while a script runs nobody else is served

local function key(kind, name) return KEYS[1] .. kind .. ':' .. name end

local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000), t[1], t[2]
end

-- sixtieth is a part of a window of deduplication, in ms.
local function sixtieth(window) return math.ceil(window / 60) end

-- stand puts a job at the end of its line. It is due since then.
local function stand(lane, ref, since)
  redis.call('XADD', key('line', lane), '*', 'job', ref)
  redis.call('HSET', key('job', ref), 'state', 'waiting', 'at', since)
end

-- leave ends leases of one lane, some hundreds at most.
local function leave(lane, refs, entries)
  local line = key('line', lane)
  redis.call('XACK', line, GROUP, unpack(entries))
  redis.call('XDEL', line, unpack(entries))
  redis.call('ZREM', key('leases', lane), unpack(refs))
end

-- advance moves the jobs whose delay or lease is over to the end of the line. Everything that puts a job into a line or takes one out does this first:
-- so each job stands behind all that became due before it.
local function advance(lane, now)
  local later = redis.call('ZRANGEBYSCORE', key('later', lane), '-inf', now, 'WITHSCORES', 'LIMIT', 0, MOVES)
  local lapsed = redis.call('ZRANGEBYSCORE', key('leases', lane), '-inf', now, 'WITHSCORES', 'LIMIT', 0, MOVES)
  local i, j = 1, 1
  while later[i] or lapsed[j] do
    if not lapsed[j] or later[i] and tonumber(later[i + 1]) <= tonumber(lapsed[j + 1]) then
      redis.call('ZREM', key('later', lane), later[i])
      stand(lane, later[i], later[i + 1])
      i = i + 2
    else
      local ref = lapsed[j]
      local entry = redis.call('HGET', key('job', ref), 'entry')
      if entry then
        leave(lane, {ref}, {entry})
        stand(lane, ref, lapsed[j + 1])
        redis.call('HSET', key('job', ref), 'reason', 'lease lapsed')
      else
        redis.call('ZREM', key('leases', lane), ref) -- somebody deleted the job by hand
      end
      j = j + 2
    end
  end
end
