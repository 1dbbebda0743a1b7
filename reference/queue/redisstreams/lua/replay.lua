-- Makes the event of ref ARGV[2] due at once, with its attempts counted from zero; without its finished steps if ARGV[3] is 1. Answers 1, 0 when it is not known or not kept, -1 when a
-- newer version of its resource was there since, or -2 when it is leased.
local ref, now = ARGV[2], clock()
local job, kept = key('job', ref), false
local function look(at) return redis.call('HMGET', at, 'body', 'state', 'lane', 'entry', 'row', 'version', 'since') end
local h = look(job)
if h[1] == '' then
  kept = true
  h = look(key('kept', ref))
end
if not h[1] then return 0 end
local state, lane, row = h[2] or 'waiting', h[3], h[5]
if state == 'leased' then return -2 end

local w
if row and state ~= 'waiting' and state ~= 'later' then
  w = window(row)
  if h[6] < w.version or w.pending ~= '' then return -1 end
  w.version, w.pending, w.opened, w.due = h[6], ref, now, now
  if state == 'dead' then w.dead = math.max(0, w.dead - 1) end
end
if lane then advance(lane, now) end
if kept then
  redis.call('DEL', job) -- is never refused for want of memory, and so what follows it is not either
  redis.call('RENAME', key('kept', ref), job)
  for _, kind in ipairs({'job', 'past', 'steps'}) do redis.call('PERSIST', key(kind, ref)) end
  if state == 'done' then uncount(lane, tonumber(h[7])) end
elseif state == 'dead' then
  redis.call('XDEL', KEYS[1] .. 'dead', h[4])
  redis.call('HINCRBY', KEYS[1] .. 'counts', 'dead:' .. lane, -1)
end
if w then save(w, now) end
if kept or state == 'dead' or state == 'later' and not row and redis.call('ZREM', key('later', lane), ref) == 1 then stand(lane, ref, now) end
if ARGV[3] == '1' then redis.call('DEL', key('steps', ref)) end
anew(ref, 'replayed', now)
return 1
