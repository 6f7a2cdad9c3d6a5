"""What happens to a task on Redis, each step whole or not at all.

Kombu's own transport takes a message from the list and notes it in a second step; a worker killed
between the two loses it. Here a claim is one script. Scores are the ends of leases by Redis's
clock, so that workers' clocks don't matter; and each claim has a name of its own, so that who
lost a lease can't settle the task of who has it now.

Keys: the list of waiting tasks (taken from its right end), a hash of claims and their messages, a
sorted set of claims by their lease's end, a hash of deliveries by task, a list of dead letters.
"""

_NOW = """
local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
"""

# A message that can't be read is nobody's task: its own text is then its name.
_TASK_ID = """
local function task_id(raw)
  local read, message = pcall(cjson.decode, raw)
  if read and type(message) == 'table' and type(message['headers']) == 'table'
      and type(message['headers']['id']) == 'string' then
    return message['headers']['id']
  end
  return redis.sha1hex(raw)
end
"""

CLAIM = (
    _NOW
    + _TASK_ID
    + """
local raw = redis.call('RPOP', KEYS[1])
if not raw then return false end
redis.call('HSET', KEYS[2], ARGV[1], raw)
redis.call('ZADD', KEYS[3], now() + tonumber(ARGV[2]), ARGV[1])
return {raw, redis.call('HINCRBY', KEYS[4], task_id(raw), 1)}
"""
)
"""Keys: waiting, claims, ends, deliveries. Arguments: the claim, the lease in milliseconds."""

EXTEND = (
    _NOW
    + """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('ZADD', KEYS[2], now() + tonumber(ARGV[2]), ARGV[1])
return 1
"""
)
"""Keys: claims, ends. Arguments: the claim, the lease in milliseconds."""

ACKNOWLEDGE = (
    _TASK_ID
    + """
local raw = redis.call('HGET', KEYS[1], ARGV[1])
if not raw then return 0 end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], task_id(raw))
return 1
"""
)
"""Keys: claims, ends, deliveries. Argument: the claim."""

RELEASE = (
    _TASK_ID
    + """
local raw = redis.call('HGET', KEYS[2], ARGV[1])
if not raw then return 0 end
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('RPUSH', KEYS[1], raw)
redis.call('HINCRBY', KEYS[4], task_id(raw), -1)
return 1
"""
)
"""Keys: waiting, claims, ends, deliveries. Argument: the claim. It wasn't the task's fault."""

RESTORE = (
    _NOW
    + """
local ended = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now(), 'LIMIT', 0, ARGV[1])
for _, claim in ipairs(ended) do
  local raw = redis.call('HGET', KEYS[2], claim)
  redis.call('HDEL', KEYS[2], claim)
  redis.call('ZREM', KEYS[3], claim)
  if raw then redis.call('RPUSH', KEYS[1], raw) end
end
return #ended
"""
)
"""Keys: waiting, claims, ends. Argument: how many at most."""

DEAD_LETTER = """
local raw = redis.call('HGET', KEYS[2], ARGV[1])
if not raw then return 0 end
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('LPUSH', KEYS[1], raw)
return 1
"""
"""Keys: dead letters, claims, ends. Argument: the claim."""

REDRIVE = (
    _TASK_ID
    + """
if redis.call('LREM', KEYS[1], -1, ARGV[1]) == 0 then return 0 end
redis.call('HDEL', KEYS[3], task_id(ARGV[1]))
redis.call('LPUSH', KEYS[2], ARGV[2])
return 1
"""
)
"""Keys: dead letters, waiting, deliveries. Arguments: the message as it is, and as it will be."""
