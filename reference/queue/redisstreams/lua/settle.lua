-- Ends, prolongs or takes back leases, or does what needs one. ARGV[1] is for how many ms a finished event stays known (0: for ever); then for each lease its ref, its token, a verb, ms,
-- and a reason. Answers for each 1 or, when it was not in force, 0.
local now = clock()
local window = tonumber(ARGV[1])
local done, dead = {}, {}
local verbs = {}

function verbs.done(lane, ref, job, entry)
  redis.call('DEL', job, key('steps', ref))
  redis.call('HSET', job, 'body', '', 'state', 'done') -- the memory of deduplication
  if window > 0 then redis.call('PEXPIRE', job, window) end
  local d = done[lane] or {refs = {}, entries = {}}
  done[lane] = d
  d.refs[#d.refs + 1], d.entries[#d.entries + 1] = ref, entry -- they leave together, below
end

function verbs.dead(lane, ref, job, entry, _, reason)
  leave(lane, {ref}, {entry})
  local letter = redis.call('XADD', KEYS[1] .. 'dead', '*', 'job', ref)
  redis.call('HSET', job, 'state', 'dead', 'entry', letter, 'reason', reason)
  dead[lane] = (dead[lane] or 0) + 1
end

function verbs.retry(lane, ref, job, entry, ms, reason)
  leave(lane, {ref}, {entry})
  if ms > 0 then
    -- The clock was rounded down: one more, so that it is never early.
    redis.call('ZADD', key('later', lane), now + ms + 1, ref)
    redis.call('HSET', job, 'state', 'later', 'reason', reason)
  else
    advance(lane, now)
    stand(lane, ref, now)
    redis.call('HSET', job, 'reason', reason)
  end
end

-- The receiver had left before it got the job: nobody has worked on it. The token stays, so that this lease is over for good.
function verbs.back(lane, ref, job, entry)
  leave(lane, {ref}, {entry})
  stand(lane, ref, now)
  redis.call('HINCRBY', job, 'attempt', -1)
end

function verbs.extend(lane, ref, job, _, ms)
  redis.call('ZREM', key('leases', lane), ref) -- is never refused for want of memory, and so what follows it is not either
  redis.call('ZADD', key('leases', lane), now + ms, ref)
  redis.call('HSET', job, 'until', now + ms)
end

-- The step stands where others have their reason.
function verbs.finish(_, ref, _, _, _, step)
  redis.call('SREM', key('steps', ref), step) -- as above
  redis.call('SADD', key('steps', ref), step)
end

local answers = {}
for i = 2, #ARGV, 5 do
  local ref = ARGV[i]
  local job = key('job', ref)
  local h = redis.call('HMGET', job, 'lane', 'state', 'token', 'entry', 'until')
  if h[2] == 'leased' and h[3] == ARGV[i + 1] and tonumber(h[5]) > now then
    verbs[ARGV[i + 2]](h[1], ref, job, h[4], tonumber(ARGV[i + 3]), ARGV[i + 4])
    answers[#answers + 1] = 1
  else
    answers[#answers + 1] = 0
  end
end
for lane, d in pairs(done) do
  leave(lane, d.refs, d.entries)
  if window > 0 then
    local part = sixtieth(window)
    local count = key('done', lane .. ':' .. math.floor(now / part))
    redis.call('INCRBY', count, #d.refs)
    redis.call('PEXPIRE', count, window + part)
  else
    redis.call('HINCRBY', KEYS[1] .. 'counts', 'done:' .. lane, #d.refs)
  end
end
for lane, n in pairs(dead) do redis.call('HINCRBY', KEYS[1] .. 'counts', 'dead:' .. lane, n) end
return answers
