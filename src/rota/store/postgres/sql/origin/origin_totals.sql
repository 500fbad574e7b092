-- Start the mark of the totals again: its snapshot is from before every transaction, so that all
-- rows count as having come since. What was handed out before was appended before.
INSERT INTO rota.tally_mark (seq, snapshot, claimed, lanes, states, expires, jobs)
SELECT (SELECT max(seq) + 1 FROM rota.tally_mark), '3:3:', 0, coalesce(array_agg(place.lane), '{}'),
       coalesce(array_agg('appended'::text), '{}'), coalesce(array_agg('infinity'::timestamptz), '{}'),
       coalesce(array_agg(place.taken), '{}')
FROM rota.cursor_newest AS place
