-- Cron entries keep all options of their task's jobs.

-- What the jobs have besides the other columns: whether the task says attempts and timeout, its limit, its
-- unique and its fair option, with the keys that come of the entry's args. Null for a task that has none
-- of these, and for entries as they were.
ALTER TABLE rota.cron_entry ADD COLUMN options json;

-- As before, with the options at the end.
CREATE OR REPLACE VIEW rota.cron AS
SELECT entry.id, entry.name, entry.expression, entry.timezone, entry.missed, entry.jitter, entry.task,
       entry.args, entry.parameter, entry.queue, entry.priority, entry.max_attempts, entry.timeout,
       entry.paused, entry.declaration IS NOT NULL AS declared,
       entry.declaration IS NOT NULL AND NOT EXISTS (
           SELECT FROM rota.cron_worker AS worker
           JOIN rota.session ON session.id = worker.session
           WHERE entry.name = ANY (worker.entries)) AS undeclared,
       mark.seq, mark.since, mark.due, mark.last, entry.created_at, entry.options
FROM rota.cron_entry AS entry
CROSS JOIN LATERAL (
    SELECT newest.* FROM rota.cron_mark AS newest WHERE newest.entry = entry.id
    ORDER BY newest.entry DESC, newest.seq DESC LIMIT 1
) AS mark;
