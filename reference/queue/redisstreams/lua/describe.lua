-- What is known of an event, for its history: describe answers ref, state, since when, until when its lease is, how often it was leased, and how often since it was last begun
-- anew, and its body or the beginning of that; or nothing, when it is not kept. came is its entry in the order of coming, if that is to be its; most bounds the body.
local function describe(ref, came, most)
  local h
  for _, kind in ipairs({'job', 'kept'}) do
    local f = redis.call('HMGET', key(kind, ref), 'body', 'state', 'lane', 'entry', 'at', 'since', 'until', 'attempt', 'base', 'came')
    if f[1] and f[1] ~= '' and (not came or f[10] == came) then
      h = f
      break
    end
  end
  if not h then return end
  local state, since, ends = h[2] or 'waiting', h[6], 0
  if state == 'leased' then
    ends = tonumber(h[7])
  elseif state == 'later' then
    since = redis.call('ZSCORE', key('later', h[3]), ref)
  elseif state == 'dead' then
    since = string.match(h[4], '^%d+')
  elseif state == 'waiting' then
    since = h[5] or h[10] and string.match(h[10], '^%d+')
  end
  local attempt = tonumber(h[8] or 0)
  return {ref, state, math.floor(tonumber(since or 0)), ends, attempt + (h[9] or 0), attempt, most and string.sub(h[1], 1, most) or h[1]}
end
