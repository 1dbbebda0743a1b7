-- Stores jobs, all or none. ARGV[2] and so on: for each its lane, ref, body, why it is dead on arrival or '', and the row that it belongs to or '' when it is not debounced;
-- with a row also its version in 20 digits, the quiet window and the longest wait in ms, and the edge as queue.Edge counts them.
local TRAILING, LEADING = 0, 1
local call = redis.call
local jobs, now = key('job', ''), clock()
local lines, dead = {}, {}

local function line(lane)
  if redis.call('SADD', KEYS[1] .. 'lanes', lane) == 1 then
    redis.pcall('XGROUP', 'CREATE', key('line', lane), GROUP, '0', 'MKSTREAM') -- it is there already, if somebody deleted the set
  end
  advance(lane, now)
  lines[lane] = key('line', lane)
  return lines[lane]
end

local function bury(lane, ref, reason)
  local entry = redis.call('XADD', KEYS[1] .. 'dead', '*', 'job', ref)
  redis.call('HSET', key('job', ref), 'state', 'dead', 'lane', lane, 'entry', entry, 'reason', reason)
  note(ref, 't', 0, now, reason)
  dead[lane] = (dead[lane] or 0) + 1
end

-- arrive puts a job into its row.
local function arrive(lane, ref, row, version, quiet, most, edge)
  local w = window(row)
  local late = version < w.version
  local answered = not late and edge == LEADING and now < w.shut
  if late or answered then
    if KEEP > 0 then call('HSET', jobs .. ref, 'row', row, 'version', version) end
    forget(ref, lane, now)
    count(lane, 1, now)
    if answered then
      w.version = version
      w.shut = math.max(w.shut, math.min(now + quiet, w.opened + most))
      save(w, now)
    end
    return
  end
  if w.pending ~= '' then
    retire(w.pending, now)
    if w.due > w.opened then -- it is no leading edge, which is due at once
      w.due = math.min(math.max(w.due, now + quiet), w.opened + most)
      w.shut = math.max(w.shut, w.due)
    end
  elseif edge ~= TRAILING and now >= w.shut then
    w.opened, w.due, w.shut = now, now, now + quiet
  else
    w.opened, w.due = now, now + quiet
    w.shut = math.max(w.shut, w.due)
  end
  w.version, w.pending = version, ref
  if w.running ~= '' and not leased(w.running, now) then -- its lease lapsed, and this one takes its place
    retire(w.running, now)
    w.running = ''
  end
  call('ZADD', key('later', lane), w.due, ref)
  call('HSET', jobs .. ref, 'state', 'later', 'lane', lane, 'row', row, 'version', version)
  if w.due <= now then soon[lane] = true end
  save(w, now)
end

-- inter buries a job of a row. It counts for the row, so that this is remembered for as long as the letter may be redriven.
local function inter(lane, ref, reason, row, version)
  bury(lane, ref, reason)
  call('HSET', jobs .. ref, 'row', row, 'version', version)
  local w = window(row)
  w.dead = w.dead + 1
  save(w, now)
end

local i = 2
while i <= #ARGV do
  local lane, ref, reason, row = ARGV[i], ARGV[i + 1], ARGV[i + 3], ARGV[i + 4]
  local to = lines[lane] or line(lane)
  if call('HSETNX', jobs .. ref, 'body', ARGV[i + 2]) == 1 then -- or its event is known
    if KEEP > 0 then call('HSET', jobs .. ref, 'came', call('XADD', KEYS[1] .. 'came', '*', 'job', ref)) end
    if row ~= '' then
      if reason ~= '' then
        inter(lane, ref, reason, row, ARGV[i + 5])
      else
        -- The clock was rounded down: one more, so that it is never early.
        arrive(lane, ref, row, ARGV[i + 5], ARGV[i + 6] + 1, ARGV[i + 7] + 1, tonumber(ARGV[i + 8]))
      end
    elseif reason == '' then
      call('XADD', to, '*', 'job', ref)
    else
      bury(lane, ref, reason)
    end
  end
  i = i + (row == '' and 5 or 9)
end
for lane, n in pairs(dead) do redis.call('HINCRBY', KEYS[1] .. 'counts', 'dead:' .. lane, n) end
wake(now)
return 1
