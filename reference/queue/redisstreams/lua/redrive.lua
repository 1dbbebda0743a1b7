-- Makes the dead letter of ref ARGV[1] due again. Answers 1, or 0 when there is no such letter.
local ref = ARGV[1]
local h = redis.call('HMGET', key('job', ref), 'lane', 'state', 'entry')
if h[2] ~= 'dead' then return 0 end
local now = clock()
advance(h[1], now)
stand(h[1], ref, now)
redis.call('XDEL', KEYS[1] .. 'dead', h[3])
redis.call('HINCRBY', KEYS[1] .. 'counts', 'dead:' .. h[1], -1)
return 1
