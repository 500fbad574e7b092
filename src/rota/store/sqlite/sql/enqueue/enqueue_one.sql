-- enqueue.sql for one job: `args` is its JSON text. It takes a third less time.
-- Locks: the database. It begins with INSERT for the same reason as enqueue.sql. The moment is the
-- same wherever it stands in a statement.
INSERT INTO rota_job
       (task, queue, priority, state, max_attempts, timeout, enqueued_at, scheduled_at, headers, args)
VALUES (:task, :queue, :priority, :state,
        coalesce(:max_attempts, (SELECT max_attempts FROM rota_queue_setting WHERE queue = :queue),
                 :fallback_attempts),
        coalesce(:timeout, (SELECT timeout FROM rota_queue_setting WHERE queue = :queue),
                 :fallback_timeout),
        (julianday('now') - 2440587.5) * 86400.0,
        CASE WHEN :state = 'scheduled' THEN coalesce(:at, (julianday('now') - 2440587.5) * 86400.0 + :delay) END,
        :headers, :args)
RETURNING id;
