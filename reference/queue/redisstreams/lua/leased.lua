-- Answers what is known of the events that are leased, with ARGV[2] bytes of each.
local answer = {}
for _, lane in ipairs(redis.call('SMEMBERS', KEYS[1] .. 'lanes')) do
  for _, ref in ipairs(redis.call('ZRANGE', key('leases', lane), 0, -1)) do
    local event = describe(ref, nil, tonumber(ARGV[2]))
    if event and event[2] == 'leased' then answer[#answer + 1] = event end
  end
end
return answer
