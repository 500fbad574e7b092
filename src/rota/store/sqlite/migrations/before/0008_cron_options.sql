-- Cron entries keep all options of their task's jobs.

-- What the jobs have besides the other columns, as a JSON object: whether the task says attempts and timeout,
-- its limit, its unique and its fair option, with the keys that come of the entry's args. Null for a task
-- that has none of these, and for entries as they were. The view rota_cron has all columns of the table.
ALTER TABLE rota_cron_entry ADD COLUMN options TEXT;
