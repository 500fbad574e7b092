-- What is known of these jobs' runs: the newest progress of each, and its newest `most` lines, of
-- each of the two tables in which they may lie.
-- Locks nothing. Walks note_order and finished_note_order, for each job from its right end.
SELECT told.*
FROM unnest(%(jobs)s::int8[]) AS wanted (job)
CROSS JOIN (VALUES (false, 1::int8), (true, %(most)s::int8)) AS kind (line, size)
CROSS JOIN LATERAL (
    (
        SELECT job, line, lease, number, attempt, at, fraction, level, text FROM rota.note
        WHERE note.job = wanted.job AND note.line = kind.line
        ORDER BY job DESC, line DESC, lease DESC, number DESC LIMIT kind.size
    ) UNION ALL (
        SELECT job, line, lease, number, attempt, at, fraction, level, text FROM rota.finished_note
        WHERE finished_note.job = wanted.job AND finished_note.line = kind.line
        ORDER BY job DESC, line DESC, lease DESC, number DESC LIMIT kind.size
    )
) AS told
