-- Takes those events out of the order of coming that are kept no more, among the next behind ARGV[2]. Answers where these end ('' when there are no more), how many it took out,
-- and how many of the others are finished.
local came, last, finished = KEYS[1] .. 'came', '', 0
local gone = {}
for _, e in ipairs(redis.call('XRANGE', came, ARGV[2], '+', 'COUNT', 256)) do
  last = e[1]
  if redis.call('HGET', key('kept', e[2][2]), 'came') == last then
    finished = finished + 1
  elseif redis.call('HGET', key('job', e[2][2]), 'came') ~= last then
    gone[#gone + 1] = last
  end
end
if #gone > 0 then redis.call('XDEL', came, unpack(gone)) end
return {last, #gone, finished}
