-- Cancel jobs that wait for their time. The rows' locks decide against a stager.
WITH job AS (
    DELETE FROM rota.timer WHERE id = ANY (%(jobs)s::int8[]) RETURNING *
)
INSERT INTO rota.finished (id, enqueued_at, keep_until, timeout, segment, priority, entry, attempt,
                           max_attempts, state, queue, task, args, errors)
SELECT job.id, job.enqueued_at, now() + interval '1 day', job.timeout,
       (SELECT last_value %% 6 FROM rota.finished_turn), lane.priority, job.entry, job.attempt,
       job.max_attempts, 'cancelled', lane.queue, job.task, job.args, job.errors
FROM job JOIN rota.lane ON lane.id = job.lane
RETURNING id
