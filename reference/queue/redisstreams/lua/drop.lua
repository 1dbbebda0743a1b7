-- Makes the dead letter of ref ARGV[2] one no more; that its event is known stays. Answers 1, or 0 when there is no such letter.
local ref = ARGV[2]
local h = redis.call('HMGET', key('job', ref), 'lane', 'state', 'entry', 'row', 'attempt', 'base')
if h[2] ~= 'dead' then return 0 end
redis.call('XDEL', KEYS[1] .. 'dead', h[3])
redis.call('HINCRBY', KEYS[1] .. 'counts', 'dead:' .. h[1], -1)
local now = clock()
if KEEP > 0 then note(ref, 'a', (h[5] or 0) + (h[6] or 0), now, 'dropped') end
forget(ref, h[1], now, 'dropped')
if h[4] then
  local w = window(h[4])
  w.dead = math.max(0, w.dead - 1)
  save(w, now)
end
return 1
