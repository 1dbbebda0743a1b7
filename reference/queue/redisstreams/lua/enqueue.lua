-- Stores jobs, all or none. ARGV: for each its lane, ref, body, and why it is dead on arrival or ''.
local call = redis.call
local jobs, now = key('job', ''), clock()
local lines, dead = {}, {}

local function line(lane)
  if redis.call('SADD', KEYS[1] .. 'lanes', lane) == 1 then
    redis.pcall('XGROUP', 'CREATE', key('line', lane), GROUP, '0', 'MKSTREAM') -- it is there already, if somebody deleted the set
  end
  advance(lane, now)
  lines[lane] = key('line', lane)
  return lines[lane]
end

local function bury(lane, ref, reason)
  local entry = redis.call('XADD', KEYS[1] .. 'dead', '*', 'job', ref)
  redis.call('HSET', key('job', ref), 'state', 'dead', 'lane', lane, 'entry', entry, 'reason', reason)
  dead[lane] = (dead[lane] or 0) + 1
end

for i = 1, #ARGV, 4 do
  local lane, ref, reason = ARGV[i], ARGV[i + 1], ARGV[i + 3]
  local to = lines[lane] or line(lane)
  if call('HSETNX', jobs .. ref, 'body', ARGV[i + 2]) == 1 then -- or its event is known
    if reason == '' then
      call('XADD', to, '*', 'job', ref)
    else
      bury(lane, ref, reason)
    end
  end
end
for lane, n in pairs(dead) do redis.call('HINCRBY', KEYS[1] .. 'counts', 'dead:' .. lane, n) end
return #ARGV / 4
