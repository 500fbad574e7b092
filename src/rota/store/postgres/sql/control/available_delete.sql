-- Remove available jobs from the log; see available_cancel.sql.
WITH waiting AS MATERIALIZED (
    SELECT entry.segment, entry.ctid AS place
    FROM rota.log AS entry
    CROSS JOIN LATERAL (
        SELECT * FROM rota.lane_place WHERE lane_place.lane = entry.lane LIMIT 1
    ) AS place
    WHERE entry.id = ANY (%(jobs)s::int8[]) AND entry.lane = ANY (%(lanes)s::int4[])
      AND ((entry.xid, entry.id) > (place.xid, place.id)
        OR entry.id > place.hole_ids[array_position(place.hole_xids, entry.xid)])
      AND (entry.unique_key IS NULL OR coalesce((
        SELECT true FROM rota.unique_key AS held
        WHERE held.key = entry.unique_key AND held.task = entry.task AND held.job = entry.id
          AND held.entry = entry.entry), false))
), job AS (
    DELETE FROM rota.log AS job USING waiting
    WHERE job.segment = waiting.segment AND job.ctid = waiting.place
    RETURNING job.id, job.xid, job.lane, job.unique_key, job.headers
), removed AS (
    INSERT INTO rota.tally (slot, lane, state, jobs, appended_by)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane, 'removed', count(*), NULL
    FROM job GROUP BY lane
    UNION ALL
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane, 'appended', count(*), xid
    FROM job GROUP BY lane, xid
)
SELECT id, unique_key, headers ->> 'rota.node' FROM job
