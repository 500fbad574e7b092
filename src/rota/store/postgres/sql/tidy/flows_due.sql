-- The next flows whose retention is over, locked; one that is being retried is left out. Walks
-- flow_end_kept from an hour before the last whole round on, see prune_discarded.sql.
SELECT flow.id
FROM (
    SELECT ended.flow, ended.round FROM rota.flow_end AS ended
    WHERE ended.keep_until >= (SELECT to_timestamp(last_value - 3600) FROM rota.flow_pruned)
      AND ended.keep_until <= now()
    ORDER BY ended.keep_until, ended.flow LIMIT %(size)s::int8
) AS due
JOIN rota.flow ON flow.id = due.flow AND flow.round = due.round
FOR UPDATE OF flow SKIP LOCKED
