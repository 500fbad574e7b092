-- Take so many ids for jobs, in rising order.
SELECT ARRAY(SELECT nextval('rota.job_id') FROM generate_series(1, %(count)s::int8))
