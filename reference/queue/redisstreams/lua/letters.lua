-- Answers the next dead letters behind ARGV[2], about ARGV[3] bytes of them: id, ref, reason, attempts, body.
local answer, bytes = {}, 0
for _, e in ipairs(redis.call('XRANGE', KEYS[1] .. 'dead', ARGV[2], '+', 'COUNT', 256)) do
  local ref = e[2][2]
  local h = redis.call('HMGET', key('job', ref), 'reason', 'attempt', 'body')
  answer[#answer + 1] = {e[1], ref, h[1], tonumber(h[2] or 0), h[3]}
  bytes = bytes + (h[3] and #h[3] or 0)
  if bytes > tonumber(ARGV[3]) then break end
end
return answer
