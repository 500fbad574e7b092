-- Cancel jobs that wait for their time, and say so in the tally. The rows' locks decide against a
-- stager. `keep_until` is a day, rounded up to 45 minutes as in settle_complete.sql.
WITH job AS (
    DELETE FROM rota.timer WHERE id = ANY (%(jobs)s::int8[]) RETURNING *
), gone AS (
    INSERT INTO rota.tally (slot, lane, state, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane, state, -count(*)
    FROM job GROUP BY lane, state
), ended AS (
    INSERT INTO rota.finished (lane, id, enqueued_at, keep_until, timeout, segment, priority, entry,
                               attempt, max_attempts, state, queue, task, args, errors)
    SELECT CASE WHEN lane.of_key THEN lane.id END, job.id, job.enqueued_at, date_bin('45 minutes', now() + interval '1 day 45 minutes', 'epoch'),
           job.timeout, (SELECT last_value %% 6 FROM rota.finished_turn), lane.priority, job.entry,
           job.attempt, job.max_attempts, 'cancelled', lane.queue, job.task, job.args, job.errors
    FROM job JOIN rota.lane ON lane.id = job.lane
    RETURNING id, queue, priority, keep_until
), counted AS (
    INSERT INTO rota.tally (slot, lane, state, expires, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane.id, 'cancelled', kind.keep_until,
           kind.jobs
    FROM (
        SELECT queue, priority, keep_until, count(*) AS jobs FROM ended
        GROUP BY queue, priority, keep_until
    ) AS kind
    JOIN rota.lane ON lane.queue = kind.queue AND lane.priority = kind.priority AND NOT lane.of_key
)
SELECT id FROM ended
