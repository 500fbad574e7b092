-- Give the unique keys of such jobs what they had: `keys` is a JSON array of [key, task, until,
-- first enqueued at].
-- Locks: the database. Walks: rota_unique by its primary key.
UPDATE rota_unique
SET until = json_extract(was.value, '$[2]'), first_at = json_extract(was.value, '$[3]')
FROM json_each(:keys) AS was
WHERE rota_unique.key = json_extract(was.value, '$[0]')
  AND rota_unique.task = json_extract(was.value, '$[1]');
