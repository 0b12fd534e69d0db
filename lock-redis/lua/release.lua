-- Removes a claim, and wakes those who wait for it.
--
-- KEYS: 1 the claim, 2 the fence.
-- ARGV: 1 claim id, 2 channel, 3 how long the fence lives on, in ms.
-- Answer: 1 if the claim held and is gone now, 0 if it did not hold.
--
-- Nobody may be allowed to publish: the lock goes all the same, and those who wait find out a little later.
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then
    -- Someone put a list or the like in the claim's place: the claim is gone.
    if not string.find(held['err'], 'WRONGTYPE', 1, true) then return held end
elseif held and string.sub(held, 1, 32) == ARGV[1] then
    redis.call('DEL', KEYS[1])
    redis.pcall('PUBLISH', ARGV[2], '')
    return 1
end
-- A write, so that a replica, whose word that the claim has gone may be old, answers with a refusal.
redis.call('PEXPIRE', KEYS[2], math.max(redis.call('PTTL', KEYS[2]), tonumber(ARGV[3])))
return 0
