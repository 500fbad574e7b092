-- Have the watch of a group of workers, unless another one of the group has it: a lock of this
-- connection.
SELECT pg_try_advisory_lock(7682006, %(group)s::int4)
