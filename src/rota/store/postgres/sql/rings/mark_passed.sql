-- Whether the marks of the totals that were left count no more: the newest one is in the current
-- table, and that has had one for a minute. So long nothing is truncated: a snapshot of before,
-- such as that of a dump that is about to lock its tables, would see no mark at all.
SELECT coalesce((
    SELECT newest.tableoid = current.table_id FROM rota.tally_mark AS newest ORDER BY newest.seq DESC LIMIT 1
) AND EXISTS (
    SELECT FROM rota.tally_mark AS mark
    WHERE mark.tableoid = current.table_id AND mark.at <= clock_timestamp() - interval '1 minute'
), false)
FROM (
    SELECT ('rota.tally_mark_' || last_value % 2)::regclass AS table_id FROM rota.tally_mark_turn
) AS current
