-- Write the totals of this moment down as the newest mark: one statement, hence one snapshot.
-- Nothing is written while the newest mark is younger than `age` seconds or still says it all.
-- Locks: nothing. Of two sessions that squeeze at once the second finds its number taken and stops
-- there; to take a number, a session must have seen the mark before it. While the ring of the marks
-- turns, two may have the same number: each is right, and what one of them has not counted is not
-- truncated.
-- Walks: tally_mark's right end; log_order per lane in use and tally_xid from the newest mark's
-- snapshot on, never what was there before; cursor_order for each lane in use.
-- Where there are many lanes, a lane that was given as much as it has handed out leaves the totals;
-- how many of its jobs ended, with the others.
-- A mark whose transaction is still to come is that of another cluster, before the first worker has
-- come. One whose time is still to come was made before the clock was set back.
WITH mark AS MATERIALIZED (
    SELECT seq, claimed,
           at NOT BETWEEN clock_timestamp() - make_interval(secs => %(age)s::float8) AND clock_timestamp()
           AND pg_snapshot_xmax(snapshot) <= pg_snapshot_xmax(pg_current_snapshot()) AS due
    FROM rota.tally_mark ORDER BY seq DESC LIMIT 1
), counted AS MATERIALIZED (
    SELECT lane, state, expires, jobs, recent FROM rota.counter WHERE (SELECT due FROM mark)
), handed AS MATERIALIZED (
    SELECT coalesce(sum(place.taken), 0)::int8 AS out
    FROM rota.lane_used AS lane
    CROSS JOIN LATERAL (
        SELECT place.taken FROM rota.cursor AS place WHERE place.lane = lane.id
        ORDER BY place.lane DESC, place.seq DESC LIMIT 1
    ) AS place
    WHERE (SELECT due FROM mark)
), even AS MATERIALIZED (
    SELECT lane FROM counted
    WHERE state IN ('appended', 'claimed', 'removed') AND NOT (SELECT few FROM rota.lane_few)
    GROUP BY lane HAVING sum(CASE state WHEN 'appended' THEN jobs ELSE -jobs END) = 0
), busy AS MATERIALIZED (
    SELECT lane FROM counted
    WHERE state = 'appended' AND jobs <> 0 AND lane NOT IN (SELECT lane FROM even)
), total AS MATERIALIZED (
    SELECT mark.seq + 1 AS seq, pg_current_snapshot() AS snapshot, handed.out AS claimed,
           coalesce(total.lanes, '{}') AS lanes, coalesce(total.states, '{}') AS states,
           coalesce(total.expires, '{}') AS expires, coalesce(total.jobs, '{}') AS jobs, turn.slot
    FROM mark, handed, (
        SELECT last_value %% 2 AS slot FROM rota.tally_mark_turn
    ) AS turn, (
        -- An expiry of a moment ago may still lie ahead for a statement that began before.
        SELECT array_agg(lane) AS lanes, array_agg(state) AS states, array_agg(expires) AS expires,
               array_agg(jobs) AS jobs
        FROM counted
        WHERE jobs <> 0
          AND CASE WHEN expires = '-infinity' THEN (SELECT few FROM rota.lane_few) OR lane IN (SELECT lane FROM busy)
                   ELSE expires > now() - interval '1 second' END
          AND (state IN ('appended', 'claimed', 'removed') AND lane IN (SELECT lane FROM even)) IS NOT TRUE
    ) AS total
    WHERE mark.due
      AND (handed.out <> mark.claimed OR EXISTS (SELECT FROM counted WHERE recent > 0))
), marked_0 AS (
    INSERT INTO rota.tally_mark_0 (seq, snapshot, claimed, lanes, states, expires, jobs)
    SELECT seq, snapshot, claimed, lanes, states, expires, jobs FROM total WHERE slot = 0
    ON CONFLICT (seq) DO NOTHING
    RETURNING seq
), marked_1 AS (
    INSERT INTO rota.tally_mark_1 (seq, snapshot, claimed, lanes, states, expires, jobs)
    SELECT seq, snapshot, claimed, lanes, states, expires, jobs FROM total WHERE slot = 1
    ON CONFLICT (seq) DO NOTHING
    RETURNING seq
)
SELECT (SELECT count(*) FROM marked_0) + (SELECT count(*) FROM marked_1)
