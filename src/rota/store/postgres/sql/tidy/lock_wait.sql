-- Give up soon on a lock that is not to be had: whoever waits for an exclusive lock makes all
-- others wait behind him.
SELECT set_config('lock_timeout', '50ms', true)
