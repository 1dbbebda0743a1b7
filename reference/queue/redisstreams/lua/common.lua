-- What all scripts share. KEYS[1] is what every key of the queue begins with; its braces keep them on one slot. ARGV[1] is for how many ms a finished event stays
-- known (0: for ever), and for how many it is kept, with all that is known of it (0: for none).
--
--   job:REF       hash: body (the event as Go packed it; '' when the job is done), state (none: it never left the line), lane, token, attempt, base (the attempts before
--                 they were last counted from zero), entry, since (when it was leased), until, at, reason; row and version of one that is debounced; came. Of a finished
--                 job only body and state remain: that its event is known.
--   kept:REF      hash: what job:REF was, of a finished one that is kept, with since when it is finished
--   past:REF      list: the attempts that failed, t NUMBER MS REASON, and what people did, a LEASES MS WHAT; PAST of them at most
--   came          stream: the events that are kept, in the order in which they came
--   row:NAME      hash: what is known of the updates of one resource (rows.lua)
--   steps:REF     set: the finished steps of a job that is not done, or is kept
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
local WINDOW, KEEP = string.match(ARGV[1], '^(%d+) (%d+)$')
WINDOW, KEEP = tonumber(WINDOW), tonumber(KEEP)
local PAST = 256
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
  local entry = redis.call('XADD', key('line', lane), '*', 'job', ref)
  redis.call('HSET', key('job', ref), 'state', 'waiting', 'at', since, 'entry', entry)
end

-- note adds to the past of a job: what is 't' for an attempt that failed and 'a' for an act, number its number or how often the job was leased before.
local function note(ref, what, number, now, text)
  local past = key('past', ref)
  if redis.call('RPUSH', past, what .. ' ' .. number .. ' ' .. now .. ' ' .. text) > PAST then redis.call('LPOP', past) end
end

-- forget leaves of a finished job that its event is known, and for a while what it was.
local function forget(ref, lane, now, state)
  local job = key('job', ref)
  if KEEP > 0 then
    local kept = key('kept', ref)
    redis.call('RENAME', job, kept)
    redis.call('HSET', kept, 'state', state or 'done', 'lane', lane, 'since', now)
    redis.call('HDEL', kept, 'entry', 'until', 'at', 'reason')
    -- What is known of it ends no later than that it is known, below: the event may come anew then.
    for _, kind in ipairs({'kept', 'past', 'steps'}) do redis.call('PEXPIRE', key(kind, ref), KEEP) end
  else
    redis.call('DEL', job, key('steps', ref), key('past', ref))
  end
  redis.call('HSET', job, 'body', '', 'state', 'done')
  if WINDOW > 0 then redis.call('PEXPIRE', job, WINDOW) end
end

-- count counts finished jobs.
local function count(lane, jobs, now)
  if WINDOW > 0 then
    local part = sixtieth(WINDOW)
    local sum = key('done', lane .. ':' .. math.floor(now / part))
    redis.call('INCRBY', sum, jobs)
    redis.call('PEXPIRE', sum, WINDOW + part)
  else
    redis.call('HINCRBY', KEYS[1] .. 'counts', 'done:' .. lane, jobs)
  end
end

-- noteKept notes the attempt of a finished job that is kept.
local function noteKept(ref, number, now, text)
  note(ref, 't', number, now, text)
  redis.call('PEXPIRE', key('past', ref), KEEP)
end

-- uncount takes back that a job was counted, which was finished at some time.
local function uncount(lane, since)
  if WINDOW == 0 then
    redis.call('HINCRBY', KEYS[1] .. 'counts', 'done:' .. lane, -1)
    return
  end
  local sum = key('done', lane .. ':' .. math.floor(since / sixtieth(WINDOW)))
  if redis.call('EXISTS', sum) == 1 then redis.call('DECR', sum) end
end

-- anew counts the attempts of a job from zero, by somebody's act.
local function anew(ref, what, now)
  local job = key('job', ref)
  local leases = redis.call('HINCRBY', job, 'base', redis.call('HGET', job, 'attempt') or 0)
  redis.call('HSET', job, 'attempt', 0)
  note(ref, 'a', leases, now, what)
end

-- leave ends leases of one lane, some hundreds at most.
local function leave(lane, refs, entries)
  local line = key('line', lane)
  redis.call('XACK', line, GROUP, unpack(entries))
  redis.call('XDEL', line, unpack(entries))
  redis.call('ZREM', key('leases', lane), unpack(refs))
end

