-- Remove a batch of discarded jobs whose retention is over; how many. Their totals have expired by
-- themselves. What somebody retries or deletes at the same moment is left to him.
-- Locks: the rows. Walks: finished_discarded_kept from its left end, where under an old snapshot the dead
-- rows of earlier rounds lie. Discarded jobs are few, and nobody waits for this.
WITH gone AS (
    DELETE FROM rota.finished_discarded
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM rota.finished_discarded
        WHERE keep_until <= now() AND keep_until < 'infinity'
        ORDER BY keep_until LIMIT %(size)s::int8
        FOR UPDATE SKIP LOCKED))
    RETURNING id
)
SELECT count(*)::int4 FROM gone
