-- Lengthens a claim that still holds to the longer of what remains and a lease.
--
-- KEYS: 1 the claim, 2 the fence.
-- ARGV: 1 claim id, 2 lease in ms, 3 how long the fence outlives the lease, in ms.
-- Answer: remaining ms; -1 if the claim does not hold.
--
-- The fence is written only when it would end within half of its time after the claim, so that a renewal is one write.
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then
    -- Someone put a list or the like in the claim's place: the claim is gone.
    if string.find(held['err'], 'WRONGTYPE', 1, true) then return -1 end
    return held
end
if not held or string.sub(held, 1, 32) ~= ARGV[1] then return -1 end
local lease = math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[2]))
redis.call('PEXPIRE', KEYS[1], lease)
local beyond = tonumber(ARGV[3])
if redis.call('PTTL', KEYS[2]) < lease + beyond / 2 then
    redis.call('SET', KEYS[2], string.match(held, '^%x+ (%d+) '), 'PX', lease + beyond)
end
return lease
