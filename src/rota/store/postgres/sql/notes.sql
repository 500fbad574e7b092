-- What is known of these jobs' runs: the newest progress of each, and its newest `most` lines.
-- Locks nothing. Walks note_order and finished_note_order, for each job from its right end.
SELECT told.*
FROM unnest(%(jobs)s::int8[]) AS wanted (job)
CROSS JOIN (VALUES (false, 1::int8), (true, %(most)s::int8)) AS kind (line, size)
CROSS JOIN LATERAL (
    SELECT job, line, lease, number, attempt, at, fraction, level, text FROM (
        SELECT job, line, lease, number, attempt, at, fraction, level, text
        FROM rota.note AS living
        WHERE living.job = wanted.job AND living.line = kind.line
        UNION ALL
        SELECT job, line, lease, number, attempt, at, fraction, level, text
        FROM rota.finished_note AS ended
        WHERE ended.job = wanted.job AND ended.line = kind.line
    ) AS note
    ORDER BY job DESC, line DESC, lease DESC, number DESC
    LIMIT kind.size
) AS told
