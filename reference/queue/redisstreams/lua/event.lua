-- Answers what is known of the event of ref ARGV[2], and its past; nothing when it is not known, or not kept.
local event = describe(ARGV[2])
if not event then return {} end
return {event, redis.call('LRANGE', key('past', ARGV[2]), 0, -1)}
