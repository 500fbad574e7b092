-- Whether a worker of this group has the watch. A worker that goes to sleep in this very moment takes
-- this look for a watch, and does without.
SELECT CASE WHEN pg_try_advisory_lock(7682006, %(group)s::int4)
            THEN pg_advisory_unlock(7682006, %(group)s::int4) IS NULL ELSE true END
