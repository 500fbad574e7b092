-- Take so many ids for jobs, in rising order; of a run without gaps only the first is given. Gives
-- also the time, in seconds since 1970.
SELECT CASE WHEN job.ids[%(count)s::int4] - job.ids[1] = %(count)s::int4 - 1
            THEN job.ids[1:1] ELSE job.ids END,
       extract(epoch FROM clock_timestamp())::float8
FROM (
    SELECT ARRAY(SELECT nextval('rota.job_id')
                 FROM (SELECT generate_series(1, %(count)s::int4)) AS wanted) AS ids OFFSET 0  -- once
) AS job
