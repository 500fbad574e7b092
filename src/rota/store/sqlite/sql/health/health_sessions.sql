-- Workers, when they were last heard of, and what they hold.
-- Locks nothing. Walks: rota_session_alive, and each session's part of rota_job_running.
SELECT id, host || ':' || pid, queues, timeout,
       (julianday('now') - 2440587.5) * 86400.0 - renewed_at,
       (SELECT count(*) FROM rota_job INDEXED BY rota_job_running
        WHERE rota_job.session = rota_session.id),
       (julianday('now') - 2440587.5) * 86400.0 - opened_at
FROM rota_session INDEXED BY rota_session_alive
WHERE ended_at IS NULL
ORDER BY id;
