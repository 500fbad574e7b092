-- Lease jobs that this transaction has enqueued itself, by priority and then in their order: the
-- claim of a test.
-- Locks no lane, and moves no cursor. What it hands out comes before all that a cursor can stand
-- at: an `xid` of '0', which no transaction has. (A row of this transaction's own may be changed:
-- no other one sees it, and it goes with the rollback.) A lane that is at its very beginning gets a
-- cursor entry right behind these.
-- `shut` are lanes whose limits have no place. Void entries are passed over as by claim_keyed.sql;
-- the row of a key that is this transaction's is locked already.
-- Walks log_order in each lane, log_job, and unique_key's primary key.
WITH taken AS MATERIALIZED (
    SELECT job.*, lane.queue, lane.priority, lane.limit_id
    FROM rota.lane
    JOIN rota.queue ON queue.name = lane.queue AND NOT queue.paused
    CROSS JOIN LATERAL (
        SELECT job.lane, job.id, job.entry, job.task, job.args::text AS args, job.attempt,
               job.max_attempts, job.timeout, job.enqueued_at, job.unique_key,
               (job.errors -> -1 ->> 'suspects')::int4 AS suspects, job.headers::text AS headers
        FROM rota.log AS job
        WHERE job.lane = lane.id AND job.xid = pg_current_xact_id()
          AND (%(jobs)s::int8[] IS NULL OR job.id = ANY (%(jobs)s::int8[]))
          AND (%(task)s::text IS NULL OR job.task = %(task)s::text)
          AND (job.unique_key IS NULL OR EXISTS (
              SELECT FROM rota.unique_key AS held
              WHERE held.key = job.unique_key AND held.task = job.task AND held.job = job.id
                AND held.entry = job.entry))
        ORDER BY job.lane, job.xid, job.id LIMIT %(size)s::int8
    ) AS job
    WHERE (%(queues)s::text[] IS NULL OR lane.queue = ANY (%(queues)s::text[]))
      AND lane.id <> ALL (%(shut)s::int4[])
    ORDER BY lane.priority, job.id LIMIT %(size)s::int8
), handed AS (
    UPDATE rota.log SET xid = '0' FROM taken
    WHERE log.id = taken.id AND log.entry = taken.entry AND log.xid = pg_current_xact_id()
), begun AS (
    INSERT INTO rota.cursor (slot, lane, seq, xid, id, taken, hole_xids, hole_ids)
    SELECT (SELECT last_value %% 2 FROM rota.cursor_turn), first.lane, coalesce(place.seq, 0), '1', 0, 0,
           '{}', '{}'
    FROM (SELECT DISTINCT lane FROM taken) AS first
    LEFT JOIN LATERAL (
        SELECT place.seq + 1 AS seq, place.xid FROM rota.cursor AS place
        WHERE place.lane = first.lane
        ORDER BY place.lane DESC, place.seq DESC LIMIT 1
    ) AS place ON true
    WHERE coalesce(place.xid, '0') = '0'
), held AS MATERIALIZED (
    SELECT held.key, held.task, held.while_waiting AND coalesce(held.until <= now(), true) AS free
    FROM taken JOIN rota.unique_key AS held
      ON held.key = taken.unique_key AND held.task = taken.task AND held.job = taken.id
    WHERE taken.unique_key IS NOT NULL
), started AS (
    UPDATE rota.unique_key AS key SET state = 'running' FROM held
    WHERE key.key = held.key AND key.task = held.task AND NOT held.free
), freed AS (
    DELETE FROM rota.unique_key AS key USING held
    WHERE key.key = held.key AND key.task = held.task AND held.free
), lease AS (
    INSERT INTO rota.lease (slot, session, lane, jobs, limits)
    SELECT (SELECT last_value %% 2 FROM rota.lease_turn), %(session)s::int8, min(lane), array_agg(id),
           CASE WHEN bool_or(limit_id <> 0) THEN array_agg(limit_id) END
    FROM (SELECT id, lane, limit_id FROM taken ORDER BY id) AS taken
    HAVING count(*) > 0
    RETURNING id
), rated AS (
    INSERT INTO rota.limit_start (slot, limit_id, at, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.limit_turn), taken.limit_id, clock_timestamp(), count(*)
    FROM taken JOIN rota.limit_key ON limit_key.id = taken.limit_id AND limit_key.rate_count IS NOT NULL
    WHERE taken.limit_id <> 0
    GROUP BY taken.limit_id
)
SELECT taken.id, lease.id, taken.task, taken.args, taken.queue, taken.priority, taken.attempt + 1,
       taken.max_attempts, taken.timeout, extract(epoch FROM taken.enqueued_at)::float8, taken.suspects,
       taken.headers, taken.unique_key, taken.limit_id <> 0
FROM taken CROSS JOIN lease
ORDER BY taken.priority, taken.id
