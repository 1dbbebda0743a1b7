-- Leases up to ARGV[3] jobs of lane ARGV[2] for ARGV[4] ms, about ARGV[5] bytes of them at most. Answers the time, and either ref, token, attempt and body of each
-- or, with none, in how many ms the next becomes due (-1: not known) and the id of the last entry of the line.
local lane, max, lease, budget = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local now, seconds, micros = clock()
local line = key('line', lane)

-- take gives the next entries to the group. The group can be missing where somebody lost or deleted it: a new one begins at the first entry, and what
-- is leased at that moment is told by its job.
local function take(count)
  if redis.call('EXISTS', line) == 0 then return {} end
  local reply = redis.pcall('XREADGROUP', 'GROUP', GROUP, CONSUMER, 'COUNT', count, 'STREAMS', line, '>')
  if reply and reply.err then
    redis.call('XGROUP', 'CREATE', line, GROUP, '0')
    reply = redis.call('XREADGROUP', 'GROUP', GROUP, CONSUMER, 'COUNT', count, 'STREAMS', line, '>')
  end
  return reply and reply[1][2] or {}
end

-- mayLease decides about a job of a row: while another of it is leased, it waits for that.
local function mayLease(row, ref, entry)
  if yields(row, ref, now) then return false end
  local w = window(row)
  if w.running ~= '' and w.running ~= ref then
    local busy = leased(w.running, now)
    if busy then
      leave(lane, {ref}, {entry})
      redis.call('ZADD', key('later', lane), busy, ref)
      redis.call('HSET', key('job', ref), 'state', 'later')
      return false
    end
    retire(w.running, now)
  end
  w.running = ref
  if w.pending == ref then w.pending = '' end
  save(w, now)
  return true
end

local leases = {}
local bytes, largest = 0, 0
local deadlines = {}
local function give(entry, ref)
  local job = key('job', ref)
  local h = redis.call('HMGET', job, 'body', 'state', 'entry', 'token', 'attempt', 'row')
  local state = h[2] or 'waiting'
  if state == 'leased' and h[3] == entry then return end -- after the loss of the group: the lease is in force
  if not h[1] or state ~= 'waiting' then                 -- a job that was deleted by hand, or stands in the line twice
    redis.call('XACK', line, GROUP, entry)
    redis.call('XDEL', line, entry)
    return
  end
  if h[6] and not mayLease(h[6], ref, entry) then return end
  local token, attempt = (h[4] or 0) + 1, (h[5] or 0) + 1
  redis.call('HSET', job, 'state', 'leased', 'lane', lane, 'entry', entry, 'token', token, 'attempt', attempt, 'since', now, 'until', now + lease)
  deadlines[#deadlines + 1], deadlines[#deadlines + 2] = now + lease, ref
  bytes, largest = bytes + #h[1], math.max(largest, #h[1])
  leases[#leases + 1] = {ref, token, attempt, h[1]}
end

advance(lane, now)
wake(now)
local most = 1 -- what is coming may be large: look at one, and then take as many as fit if they are no larger
while #leases < max and bytes < budget do
  local entries = take(most)
  if #entries == 0 then break end
  for _, e in ipairs(entries) do give(e[1], e[2][2]) end
  if #deadlines > 0 then
    redis.call('ZADD', key('leases', lane), unpack(deadlines))
    deadlines = {}
  end
  most = math.min(max - #leases, math.max(1, math.floor((budget - bytes) / (largest + 1))), 128)
end

local wait, last = -1, '0-0'
if #leases == 0 then
  for _, kind in ipairs({'later', 'leases'}) do
    local first = redis.call('ZRANGE', key(kind, lane), 0, 0, 'WITHSCORES')
    if first[1] then
      local ms = math.max(0, tonumber(first[2]) - now)
      if wait < 0 or ms < wait then wait = ms end
    end
  end
  local entries = redis.call('XREVRANGE', line, '+', '-', 'COUNT', 1)
  if entries[1] then last = entries[1][1] end
end
return {seconds, micros, leases, wait, last}
