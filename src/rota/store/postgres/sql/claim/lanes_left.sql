-- Which of these plain lanes still have something to claim: claim_probe.sql for lanes that it has
-- found before.
-- Locks nothing and writes nothing.
SELECT asked.lane
FROM unnest(%(lanes)s::int4[]) AS asked (lane)
CROSS JOIN LATERAL (
    SELECT place.xid, place.id, place.hole_xids, place.hole_ids
    FROM rota.cursor AS place WHERE place.lane = asked.lane
    ORDER BY place.lane DESC, place.seq DESC LIMIT 1
) AS place
WHERE coalesce((
          SELECT true FROM rota.log AS job
          WHERE job.lane = asked.lane AND (job.xid, job.id) > (place.xid, place.id)
          ORDER BY job.lane, job.xid, job.id LIMIT 1), false)
   OR coalesce((
          SELECT true
          FROM unnest(place.hole_xids, place.hole_ids) AS hole (xid, id)
          CROSS JOIN LATERAL (
              SELECT FROM rota.log AS job
              WHERE job.lane = asked.lane AND job.xid = hole.xid AND job.id > hole.id LIMIT 1) AS job
          LIMIT 1), false)
