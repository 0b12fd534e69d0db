-- Claims a lock that is free, or renews the claim that is made again.
--
-- KEYS: 1 the claim, 2 the fence.
-- ARGV: 1 claim id, 2 lease in ms, 3 least token, 4 who asks, as JSON, 5 how long the fence outlives the lease, in ms.
-- Answer: {1, token, remaining ms} if the claim holds; {0, value, remaining ms} if another does, with -1 for no end.
--
-- A value is "claim token since {who}". Numbers stay below 2^53, where Lua's are exact, and are written with %.0f, since
-- Lua would write a token as 1.79e+15. Every branch that grants also writes: a server that has become a replica refuses
-- that, instead of granting what it may no longer have.
local held = redis.call('GET', KEYS[1])
local lease = tonumber(ARGV[2])
local token
if held and string.sub(held, 1, 32) == ARGV[1] then
    lease = math.max(redis.call('PTTL', KEYS[1]), lease)
    redis.call('PEXPIRE', KEYS[1], lease)
    token = string.match(held, '^%x+ (%d+) ')
elseif held then
    return {0, held, redis.call('PTTL', KEYS[1])}
else
    local time = redis.call('TIME')
    local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
    local last = tonumber(redis.call('GET', KEYS[2]) or '0') or 0
    token = string.format('%.0f', math.max(last + 1, tonumber(ARGV[3]), now))
    local value = ARGV[1] .. ' ' .. token .. ' ' .. string.format('%.0f', now) .. ' ' .. ARGV[4]
    redis.call('SET', KEYS[1], value, 'NX', 'PX', lease)
end
redis.call('SET', KEYS[2], token, 'PX', lease + tonumber(ARGV[5]))
return {1, token, lease}
