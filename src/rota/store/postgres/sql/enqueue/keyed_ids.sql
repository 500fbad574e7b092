-- Take so many ids for jobs, in rising order; gives also the time, in seconds since 1970.
SELECT ARRAY(SELECT nextval('rota.job_id') FROM generate_series(1, %(count)s::int8)),
       extract(epoch FROM clock_timestamp())::float8
