-- Remove a batch of discarded jobs whose retention is over, with what their handlers told and
-- remember; how many jobs. Their totals have expired by themselves. Jobs that are being retried or
-- deleted at the same moment are left out.
-- The turn is held: while notes move to the finished jobs, none of these goes.
-- Locks: the rows. Walks: finished_discarded_kept from an hour before the last whole round on
-- (before that, under an old snapshot, lie the dead rows of earlier rounds), finished_note_order
-- and finished_memory_order, job by job.
WITH gone AS (
    DELETE FROM rota.finished_discarded
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM rota.finished_discarded
        WHERE keep_until >= (
            SELECT to_timestamp(last_value - 3600) FROM rota.discarded_pruned)
          AND keep_until <= now() AND keep_until < 'infinity'
        ORDER BY keep_until LIMIT %(size)s::int8
        FOR UPDATE SKIP LOCKED))
    RETURNING id
), told AS (
    DELETE FROM rota.finished_note_discarded WHERE job = ANY (ARRAY(SELECT id FROM gone))
), remembered AS (
    DELETE FROM rota.finished_memory_discarded WHERE job = ANY (ARRAY(SELECT id FROM gone))
)
SELECT count(*)::int4 FROM gone
