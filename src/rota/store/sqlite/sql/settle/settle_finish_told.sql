-- settle_finish.sql for jobs with a result or an error: `told` is a JSON array of [job, result,
-- error].
UPDATE rota_job
SET state = :state, finished_at = :now, keep_until = :until, lease = NULL, session = NULL, cancel_requested = 0,
    result = told.result,
    errors = CASE WHEN told.error IS NULL THEN errors
                  ELSE json_insert(coalesce(errors, '[]'), '$[#]', json(told.error)) END
FROM (
    SELECT json_extract(value, '$[0]') AS job, json_extract(value, '$[1]') AS result,
           json_extract(value, '$[2]') AS error
    FROM json_each(:told)
) AS told
WHERE rota_job.id = told.job
  AND +rota_job.lease = :lease
  AND +rota_job.session = :session;
