-- Forget what was told of jobs that are gone: those whose retention is 0 leave without a statement
-- for their notes. Looks at up to `size` jobs with notes, from a random one on, so that a round
-- costs the same whatever there is; gives the ids of the jobs that are gone.
-- Locks: the database. Walks: rota_note and rota_job by their primary keys, job by job.
WITH RECURSIVE place (job) AS (
    SELECT min(job) FROM rota_note
    WHERE job >= abs(random()) % ((SELECT max(job) FROM rota_note) + 1)
    UNION ALL
    SELECT (SELECT min(job) FROM rota_note WHERE rota_note.job > place.job) FROM place
    WHERE place.job IS NOT NULL
    LIMIT :size
)
DELETE FROM rota_note
WHERE job IN (
    SELECT job FROM place WHERE NOT EXISTS (SELECT 1 FROM rota_job WHERE rota_job.id = place.job)
)
RETURNING job;
