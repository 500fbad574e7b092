-- The id down to which a listing looks, so that it reads at most `most` jobs of each kind it is
-- about: discarded, other finished ones, those that wait for their time, available ones (`log`),
-- running ones. Null: there are no more than that. Of each kind no further than the kinds before it
-- reach.
-- Locks nothing. Walks: finished_job, timer's primary key and log_job, backwards from `until`,
-- `most` entries of each; all leases, which are few.
WITH discarded AS MATERIALIZED (
    SELECT id FROM rota.finished WHERE %(discarded)s::bool AND segment = -1 AND id <= %(until)s::int8
    ORDER BY id DESC OFFSET %(most)s::int8 - 1 LIMIT 1
), ended AS MATERIALIZED (
    SELECT coalesce((
        SELECT id FROM rota.finished
        WHERE %(finished)s::bool AND segment >= 0 AND id <= %(until)s::int8
          AND id > coalesce((SELECT id FROM discarded), 0)
        ORDER BY id DESC OFFSET %(most)s::int8 - 1 LIMIT 1
    ), (SELECT id FROM discarded)) AS id
), waiting AS MATERIALIZED (
    SELECT coalesce((
        SELECT id FROM rota.timer
        WHERE %(waiting)s::bool AND id <= %(until)s::int8 AND id > coalesce((SELECT id FROM ended), 0)
        ORDER BY id DESC, entry DESC OFFSET %(most)s::int8 - 1 LIMIT 1
    ), (SELECT id FROM ended)) AS id
), available AS MATERIALIZED (
    SELECT coalesce((
        SELECT id FROM rota.log
        WHERE %(available)s::bool AND id <= %(until)s::int8 AND id > coalesce((SELECT id FROM waiting), 0)
        ORDER BY id DESC, entry DESC OFFSET %(most)s::int8 - 1 LIMIT 1
    ), (SELECT id FROM waiting)) AS id
)
SELECT coalesce((
    SELECT one.id FROM rota.lease CROSS JOIN LATERAL unnest(lease.jobs) AS one (id)
    WHERE %(running)s::bool AND one.id <= %(until)s::int8 AND one.id > coalesce((SELECT id FROM available), 0)
    ORDER BY one.id DESC OFFSET %(most)s::int8 - 1 LIMIT 1
), (SELECT id FROM available))
