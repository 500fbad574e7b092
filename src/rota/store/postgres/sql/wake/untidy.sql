-- Whether a ring is untidy, or a request to cancel is left over. Where there are many lanes a log
-- that is not empty is untidy: it is left as soon as it is old enough.
-- Locks nothing and writes nothing; asks for the sizes of files, and for the first request.
SELECT EXISTS (SELECT FROM rota.cancel_request)
OR EXISTS (
    SELECT FROM generate_series(0, 3) AS number
    JOIN pg_class AS segment ON segment.oid = ('rota.log_' || number)::regclass
    WHERE pg_relation_size(segment.oid) + coalesce(pg_relation_size(segment.reltoastrelid), 0)
        >= CASE WHEN number = (SELECT last_value %% 4 FROM rota.log_turn)
                     AND (SELECT few FROM rota.lane_few)
                THEN %(log_size)s::int8 ELSE 1 END)
OR EXISTS (
    SELECT FROM (
        SELECT 'cursor' AS name, last_value AS turn, %(cursor_size)s::int8 AS largest
        FROM rota.cursor_turn
        UNION ALL
        SELECT 'lease', last_value, %(lease_size)s::int8 FROM rota.lease_turn
        UNION ALL
        SELECT 'tally', last_value, %(tally_size)s::int8 FROM rota.tally_turn
        UNION ALL
        SELECT 'limit_start', last_value, %(limit_size)s::int8 FROM rota.limit_turn
    ) AS ring
    CROSS JOIN generate_series(0, 1) AS number
    JOIN pg_class AS slot ON slot.oid = format('rota.%%s_%%s', ring.name, number)::regclass
    WHERE pg_relation_size(slot.oid) + coalesce(pg_relation_size(slot.reltoastrelid), 0)
        >= CASE WHEN number = ring.turn %% 2 THEN ring.largest ELSE 1 END)
