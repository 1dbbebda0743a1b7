-- Answers the next events behind ARGV[2] in the order in which they came, with ARGV[3] bytes of each: where they end ('' when there are no more), and what is known of those that are kept.
local answer, last = {}, ''
for _, e in ipairs(redis.call('XRANGE', KEYS[1] .. 'came', ARGV[2], '+', 'COUNT', 256)) do
  last = e[1]
  answer[#answer + 1] = describe(e[2][2], e[1], tonumber(ARGV[3]))
end
return {last, answer}
