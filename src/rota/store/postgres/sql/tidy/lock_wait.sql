-- Give up soon on a lock that is held: behind a transaction that waits for an exclusive lock all
-- others have to wait.
SELECT set_config('lock_timeout', '50ms', true)
