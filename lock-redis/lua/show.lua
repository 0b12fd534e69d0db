-- Reads claims, for people.
--
-- KEYS: the claims.
-- ARGV: none.
-- Answer: for each key {value, remaining ms}, with -1 for no end; {} where nothing is; {error} where no text is.
local shown = {}
for i, key in ipairs(KEYS) do
    local held = redis.pcall('GET', key)
    if type(held) == 'table' then
        shown[i] = {held['err']}
    elseif held then
        shown[i] = {held, redis.call('PTTL', key)}
    else
        shown[i] = {}
    end
end
return shown
