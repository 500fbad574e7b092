-- Give up at once on a lock that is held: other entries wait behind this one.
SELECT set_config('lock_timeout', '2ms', true)
