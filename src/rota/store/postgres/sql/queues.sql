-- Queues with their counts per state. Counts rows: grows with the backlog and the finished jobs.
SELECT queue.name, queue.paused, job.state, count(job.id)
FROM rota.queue LEFT JOIN rota.job ON job.queue = queue.name
GROUP BY queue.name, queue.paused, job.state ORDER BY queue.name
