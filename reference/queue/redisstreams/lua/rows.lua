-- The rows of updates that are debounced. row:NAME is a hash of what is known of the updates of one resource:
--
--   version            the highest that came, in 20 digits: a number of Lua does not hold 64 bits, and texts of digits of one length compare as numbers do
--   pending            the job that waits for the end of the window, or for the end of another's lease; '' for none
--   running            the job that was leased last, '' once it is settled. While its lease is in force no other job of the row is leased.
--   opened, due, shut  when the window opened, when it ends, and until when a leading edge answers for what comes
--   dead               how many dead letters there are
--
-- A row changes in the script that changes the job which is the reason, so that they are written to the append-only file together.
--
-- Where finished events are forgotten after a window, so is a row in which nothing is going on and of which there are no dead letters; an old version that comes after that is a new one.
local soon = {} -- the lanes in which something may be due now, for wake

local function window(row)
  local h = redis.call('HMGET', key('row', row), 'version', 'pending', 'running', 'opened', 'due', 'shut', 'dead')
  return {
    row = row, version = h[1] or '', pending = h[2] or '', running = h[3] or '',
    opened = tonumber(h[4] or 0), due = tonumber(h[5] or 0), shut = tonumber(h[6] or 0), dead = tonumber(h[7] or 0),
  }
end

local function save(w, now)
  local row = key('row', w.row)
  redis.call('HSET', row, 'version', w.version, 'pending', w.pending, 'running', w.running, 'opened', w.opened, 'due', w.due, 'shut', w.shut, 'dead', w.dead)
  if WINDOW > 0 then
    if w.pending == '' and w.running == '' and w.dead == 0 then
      redis.call('PEXPIRE', row, math.max(WINDOW, w.shut - now))
    else
      redis.call('PERSIST', row)
    end
  end
end

-- leased reports until when a job is leased, or nil.
local function leased(ref, now)
  local h = redis.call('HMGET', key('job', ref), 'state', 'until')
  if h[1] == 'leased' and tonumber(h[2]) > now then return tonumber(h[2]) end
end

-- retire ends a job for which a newer one answers, wherever it stands.
local function retire(ref, now)
  local h = redis.call('HMGET', key('job', ref), 'lane', 'state', 'entry')
  local lane, state = h[1], h[2]
  if state == 'leased' or state == 'waiting' then
    leave(lane, {ref}, {h[3]})
  elseif state == 'later' then
    redis.call('ZREM', key('later', lane), ref)
  else
    return
  end
  forget(ref, lane, now)
  count(lane, 1, now)
end

-- postpone sets when a job that waits is due.
local function postpone(ref, due, now)
  local job = key('job', ref)
  local h = redis.call('HMGET', job, 'lane', 'state', 'entry')
  local lane, state = h[1], h[2]
  if state == 'waiting' then
    if due <= now then return end
    leave(lane, {ref}, {h[3]})
  elseif state ~= 'later' then
    return -- somebody deleted the job by hand
  end
  redis.call('ZADD', key('later', lane), due, ref)
  redis.call('HSET', job, 'state', 'later')
  if due <= now then soon[lane] = true end
end

-- release follows the end of a job: the pending one goes when it is due, if it waited for that.
local function release(w, ref, now)
  if w.running == ref then w.running = '' end
  if w.pending ~= '' then postpone(w.pending, w.due, now) end
  save(w, now)
end

-- yields ends a job whose lease lapsed or that was to be tried again at some time, if there is a newer one, which is tried in its place and no sooner. It reports that it did.
local function yields(row, ref, now, due)
  local w = window(row)
  if w.pending == '' or w.pending == ref then return false end
  retire(ref, now)
  w.due = math.max(w.due, due or 0)
  release(w, ref, now)
  return true
end

-- reopen makes a job that waits again the pending one of its row.
local function reopen(row, ref, now, due)
  local w = window(row)
  if w.running == ref then w.running = '' end
  w.pending, w.opened, w.due = ref, now, due
  save(w, now)
end
