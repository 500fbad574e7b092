-- Note which jobs have these keys: `taken` is a JSON array of [key, job].
-- Locks: the database. Walks: rota_unique by its primary key.
UPDATE rota_unique
SET job = json_extract(taken.value, '$[1]')
FROM json_each(:taken) AS taken
WHERE rota_unique.key = json_extract(taken.value, '$[0]') AND rota_unique.task = :task;
