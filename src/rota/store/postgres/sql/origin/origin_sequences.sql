-- Move the sequences behind the numbers that came with the rows: logical replication brings no
-- sequences.
-- The turns of the rings need none of that, any of their numbers will do.
-- Only those that are behind: producers take numbers meanwhile, and a sequence that was set to the
-- newest number that is seen here would give the next ones twice. One that has given none yet says
-- the number that it gives first.
SELECT setval(sequence.name, sequence.last)
FROM (
    SELECT 'rota.job_id'::regclass AS name, (SELECT last_value - (NOT is_called)::int FROM rota.job_id) AS given,
           greatest(
               (SELECT max(id) FROM rota.log), (SELECT max(id) FROM rota.timer),
               (SELECT max(id) FROM rota.finished), (SELECT max(job) FROM rota.unique_key)) AS last
    UNION ALL
    SELECT 'rota.lease_id', (SELECT last_value - (NOT is_called)::int FROM rota.lease_id),
           greatest(
               (SELECT max(id) FROM rota.lease), (SELECT max(lease) FROM rota.note),
               (SELECT max(lease) FROM rota.finished_note))
    UNION ALL
    SELECT 'rota.memory_id', (SELECT last_value - (NOT is_called)::int FROM rota.memory_id),
           greatest((SELECT max(id) FROM rota.memory), (SELECT max(id) FROM rota.finished_memory))
    UNION ALL
    SELECT 'rota.session_id_seq', (SELECT last_value - (NOT is_called)::int FROM rota.session_id_seq),
           (SELECT max(id) FROM rota.session)
    UNION ALL
    SELECT 'rota.lane_id_seq', (SELECT last_value - (NOT is_called)::int FROM rota.lane_id_seq),
           (SELECT max(id) FROM rota.lane)
    UNION ALL
    SELECT 'rota.limit_key_id_seq', (SELECT last_value - (NOT is_called)::int FROM rota.limit_key_id_seq),
           (SELECT max(id) FROM rota.limit_key)
    UNION ALL
    SELECT 'rota.cron_entry_id_seq', (SELECT last_value - (NOT is_called)::int FROM rota.cron_entry_id_seq),
           (SELECT max(id) FROM rota.cron_entry)
) AS sequence
WHERE sequence.last > sequence.given
