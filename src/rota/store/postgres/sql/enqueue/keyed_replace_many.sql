-- keyed_replace_now.sql for many jobs whose new entries a COPY appends in the same transaction.
-- Gives the places of the replaced ones among the keys, from 1, their ids and new entries, by their
-- ids: in the order of the keys the COPY would jump about in the log's indexes. And the segment for
-- them.
-- Each row is changed by its ctid, so a key is looked up once, and only as it was seen. (PostgreSQL
-- before 15.15, 16.11, 17.7 and 18.1 compares no ctids where it had to wait for the row's next
-- version.) Gives also whether one was not as it was seen. That may be a running job, whose key is
-- locked now: then all of this has to be taken back.
-- Locks: as in keyed_replace_now.sql.
-- Members of flows' nodes: as in keyed_replace_now.sql.
-- Leaves out jobs that go round (Again), whose entries have more columns.
WITH wanted AS MATERIALIZED (
    SELECT * FROM ROWS FROM (
        json_array_elements_text(%(keys)s::json), unnest(%(lanes)s::text::int4[])
    ) WITH ORDINALITY AS wanted (key, lane, place)
), before AS MATERIALIZED (
    SELECT wanted.place, wanted.lane AS new_lane, held.ctid AS version, held.job, held.lane, held.entry,
           held.state, held.xid = pg_current_xact_id() AS own
    FROM wanted
    CROSS JOIN LATERAL (
        SELECT held.ctid, held.* FROM rota.unique_key AS held
        WHERE held.key = wanted.key AND held.task = %(task)s AND held.iteration IS NULL AND held.last_run IS NULL
          AND held.state IN ('scheduled', 'available', 'retryable')
        OFFSET 0
    ) AS held
), moved AS (
    UPDATE rota.unique_key AS held
    SET entry = held.entry + 1, xid = pg_current_xact_id(), lane = before.new_lane,
        while_waiting = %(while_waiting)s::bool, state = 'available'
    FROM before
    WHERE held.ctid = before.version AND held.entry = before.entry AND held.state = before.state
    RETURNING before.place, held.job, held.entry, before.lane AS old_lane, before.state AS old_state
), left_node AS (
    INSERT INTO rota.flow_arrival (node, cancelled)
    SELECT old.node, count(*)
    FROM (
        SELECT (coalesce(
            (SELECT entry.headers FROM rota.log AS entry
             WHERE entry.id = moved.job AND entry.entry = moved.entry - 1 LIMIT 1),
            (SELECT entry.headers FROM rota.timer AS entry
             WHERE entry.id = moved.job AND entry.entry = moved.entry - 1)) ->> 'rota.node')::int8 AS node
        FROM moved WHERE EXISTS (SELECT FROM rota.flow_node) OFFSET 0
    ) AS old
    WHERE (SELECT true FROM rota.flow_node AS node WHERE node.id = old.node)
    GROUP BY old.node
), own AS (
    DELETE FROM rota.log AS job USING (
        SELECT place.segment, place.ctid AS place FROM before
        CROSS JOIN LATERAL (
            SELECT entry.segment, entry.ctid FROM rota.log AS entry
            WHERE entry.id = before.job AND entry.xid = pg_current_xact_id() OFFSET 0
        ) AS place
        WHERE before.own
    ) AS mine
    WHERE job.segment = mine.segment AND job.ctid = mine.place
    RETURNING job.id, job.lane
), gone AS (
    INSERT INTO rota.tally (slot, lane, state, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane, state, sum(jobs)
    FROM (
        SELECT old_lane AS lane, 'removed' AS state, 1 AS jobs FROM moved
        WHERE old_state = 'available' AND (job IN (SELECT id FROM own)) IS NOT TRUE
        UNION ALL
        SELECT own.lane, 'removed', -1 FROM own JOIN before ON before.job = own.id
        WHERE before.state <> 'available'
        UNION ALL
        SELECT old_lane, old_state, -1 FROM moved WHERE old_state <> 'available'
    ) AS change
    GROUP BY lane, state
)
SELECT stored.places, stored.jobs, stored.entries, (SELECT last_value %% 4 FROM rota.log_turn),
       stored.count < (SELECT count(*) FROM before),
       CASE WHEN %(wake)s::text IS NULL THEN false
            WHEN pg_try_advisory_lock(7682001, hashtext(%(wake)s))
            THEN pg_advisory_unlock(7682001, hashtext(%(wake)s)) IS NULL
            ELSE pg_notify('rota', concat_ws(' ', pg_current_xact_id(), %(wake)s)) IS NULL END
FROM (SELECT coalesce(array_agg(place), '{}') AS places, coalesce(array_agg(job), '{}') AS jobs,
             coalesce(array_agg(entry), '{}') AS entries, count(*)
      FROM (SELECT * FROM moved ORDER BY job) AS moved) AS stored
