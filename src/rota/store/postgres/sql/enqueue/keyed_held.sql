-- Which of these keys are taken, and by which jobs. Locks nothing. Walks unique_key's primary key.
SELECT coalesce(array_agg(key), '{}'), coalesce(array_agg(job), '{}')
FROM rota.unique_key
WHERE key = ANY (ARRAY(SELECT json_array_elements_text(%(keys)s::json))) AND task = %(task)s
