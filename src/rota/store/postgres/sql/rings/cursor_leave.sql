-- What the key lanes have handed out whose entries go with the table that was left goes on
-- counting, in the tally of the plain lane that stands for them. All lanes are locked, and all
-- other entries repeated.
INSERT INTO rota.tally (slot, lane, state, jobs)
SELECT (SELECT last_value % 2 FROM rota.tally_turn), plain.id, 'claimed', out.jobs
FROM (
    SELECT lane.queue, lane.priority, sum(newest.taken) AS jobs
    FROM rota.cursor_newest AS newest
    CROSS JOIN LATERAL (
        SELECT lane.queue, lane.priority FROM rota.lane WHERE lane.id = newest.lane LIMIT 1
    ) AS lane
    WHERE newest.slot <> (SELECT last_value % 2 FROM rota.cursor_turn) AND newest.taken > 0
    GROUP BY lane.queue, lane.priority
) AS out
JOIN rota.lane AS plain
  ON plain.queue = out.queue AND plain.priority = out.priority AND NOT plain.of_key
