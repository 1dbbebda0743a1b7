-- Takes turns of a limit. KEYS[1] is the limit; ARGV: microseconds from one turn to the next, turns that may be taken at once, turns to take.
-- The value is the instant, in microseconds of the server's clock, at which the limit is as if nobody had used it. Returns the wait in microseconds.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local every, burst, turns = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local left = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now) + turns * every
redis.call('SET', KEYS[1], string.format('%.3f', left), 'PX', math.ceil((left - now) / 1000) + 1)
return math.ceil(math.max(0, left - burst * every - now))
