-- The id down to which a listing looks, so that it reads at most `most` jobs of each kind it is about: discarded,
-- other finished ones, those that wait for their time, available ones (`log`). Null: there are no more than that.
-- Locks nothing. Walks: finished_job, timer's primary key and log_job, backwards from `until`, `most` entries of each.
SELECT max(id) FROM (
    SELECT (SELECT id FROM rota.finished WHERE segment = -1 AND id <= %(until)s::int8
            ORDER BY id DESC OFFSET %(most)s::int8 - 1 LIMIT 1) AS id
    WHERE %(discarded)s::bool
    UNION ALL
    SELECT (SELECT id FROM rota.finished WHERE segment >= 0 AND id <= %(until)s::int8
            ORDER BY id DESC OFFSET %(most)s::int8 - 1 LIMIT 1)
    WHERE %(finished)s::bool
    UNION ALL
    SELECT (SELECT id FROM rota.timer WHERE id <= %(until)s::int8
            ORDER BY id DESC, entry DESC OFFSET %(most)s::int8 - 1 LIMIT 1)
    WHERE %(waiting)s::bool
    UNION ALL
    SELECT (SELECT id FROM rota.log WHERE id <= %(until)s::int8
            ORDER BY id DESC, entry DESC OFFSET %(most)s::int8 - 1 LIMIT 1)
    WHERE %(available)s::bool
) AS last
