-- Append entries to a stream, and write down in the same moment that they were sent.
-- KEYS: the stream; the relay's position, a hash.
-- ARGV: who sends; the number of this batch; how long the stream may become, or nothing; the entries, as MessagePack;
-- the jobs that are sent and may come again.
-- 0: another relay has taken over, or this batch was sent already; then nothing is done.
local position = redis.call('HMGET', KEYS[2], 'holder', 'batch')
if position[1] ~= ARGV[1] or (position[2] or '0') ~= ARGV[2] then
    return 0
end
local trim = ARGV[3] ~= ''
for _, entry in ipairs(cmsgpack.unpack(ARGV[4])) do
    if trim then
        redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[3], '*', unpack(entry))
    else
        redis.call('XADD', KEYS[1], '*', unpack(entry))
    end
end
redis.call('HSET', KEYS[2], 'batch', tonumber(ARGV[2]) + 1, 'sent', ARGV[5])
return 1
