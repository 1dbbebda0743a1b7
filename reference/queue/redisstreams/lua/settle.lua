-- Ends, prolongs or takes back leases, or does what needs one. ARGV[2] and so on: for each lease its ref, its token, a verb, ms, and a reason. Answers for each 1 or, when it was not in force, 0.
local now = clock()
local done, dead = {}, {}
local verbs = {}

function verbs.done(lane, ref, _, entry, row)
  forget(ref, lane, now)
  if row then release(window(row), ref, now) end
  local d = done[lane] or {refs = {}, entries = {}}
  done[lane] = d
  d.refs[#d.refs + 1], d.entries[#d.entries + 1] = ref, entry -- they leave together, below
end

function verbs.dead(lane, ref, job, entry, row, _, reason, leases)
  leave(lane, {ref}, {entry})
  local letter = redis.call('XADD', KEYS[1] .. 'dead', '*', 'job', ref)
  redis.call('HSET', job, 'state', 'dead', 'entry', letter, 'reason', reason)
  note(ref, 't', leases, now, reason)
  dead[lane] = (dead[lane] or 0) + 1
  if row then
    local w = window(row)
    w.dead = w.dead + 1
    release(w, ref, now)
  end
end

function verbs.retry(lane, ref, job, entry, row, ms, reason, leases)
  -- The clock was rounded down: one more, so that it is never early.
  local due = ms > 0 and now + ms + 1 or now
  if row and yields(row, ref, now, due) then
    if KEEP > 0 then noteKept(ref, leases, now, reason) end
    return
  end
  leave(lane, {ref}, {entry})
  if row then reopen(row, ref, now, due) end
  if ms > 0 then
    redis.call('ZADD', key('later', lane), due, ref)
    redis.call('HSET', job, 'state', 'later', 'reason', reason)
  else
    advance(lane, now)
    stand(lane, ref, now)
    redis.call('HSET', job, 'reason', reason)
  end
  note(ref, 't', leases, now, reason)
end

-- The receiver had left before it got the job: nobody has worked on it. The token stays, so that this lease is over for good.
function verbs.back(lane, ref, job, entry, row)
  if row and yields(row, ref, now, now) then return end
  leave(lane, {ref}, {entry})
  if row then reopen(row, ref, now, now) end
  stand(lane, ref, now)
  redis.call('HINCRBY', job, 'attempt', -1)
end

function verbs.extend(lane, ref, job, _, _, ms)
  redis.call('ZREM', key('leases', lane), ref) -- is never refused for want of memory, and so what follows it is not either
  redis.call('ZADD', key('leases', lane), now + ms, ref)
  redis.call('HSET', job, 'until', now + ms)
end

-- The step stands where others have their reason.
function verbs.finish(_, ref, _, _, _, _, step)
  redis.call('SREM', key('steps', ref), step) -- as above
  redis.call('SADD', key('steps', ref), step)
end

local answers = {}
for i = 2, #ARGV, 5 do
  local ref = ARGV[i]
  local job = key('job', ref)
  local h = redis.call('HMGET', job, 'lane', 'state', 'token', 'entry', 'until', 'row', 'attempt', 'base')
  if h[2] == 'leased' and h[3] == ARGV[i + 1] and tonumber(h[5]) > now then
    verbs[ARGV[i + 2]](h[1], ref, job, h[4], h[6], tonumber(ARGV[i + 3]), ARGV[i + 4], h[7] + (h[8] or 0))
    answers[#answers + 1] = 1
  else
    answers[#answers + 1] = 0
  end
end
for lane, d in pairs(done) do
  leave(lane, d.refs, d.entries)
  count(lane, #d.refs, now)
end
for lane, n in pairs(dead) do redis.call('HINCRBY', KEYS[1] .. 'counts', 'dead:' .. lane, n) end
wake(now)
return answers
