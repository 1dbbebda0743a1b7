-- Makes the dead letter of ref ARGV[2] due again, with its attempts counted from zero. Answers 1, 0 when there is no such letter, or -1 when a newer version of its resource was there since.
local ref = ARGV[2]
local h = redis.call('HMGET', key('job', ref), 'lane', 'state', 'entry', 'row', 'version')
if h[2] ~= 'dead' then return 0 end
local now = clock()
advance(h[1], now)
if h[4] then
  local w = window(h[4])
  if h[5] < w.version or w.pending ~= '' then return -1 end
  w.version, w.dead = h[5], math.max(0, w.dead - 1)
  w.pending, w.opened, w.due = ref, now, now
  save(w, now)
end
stand(h[1], ref, now)
anew(ref, 'redriven', now)
redis.call('XDEL', KEYS[1] .. 'dead', h[3])
redis.call('HINCRBY', KEYS[1] .. 'counts', 'dead:' .. h[1], -1)
return 1
