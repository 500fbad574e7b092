-- Forget what counts no longer of these jobs (a JSON array of ids): all but the newest progress,
-- and lines beyond the newest `most` or so many characters.
-- Locks: the database. Walks: rota_note by its primary key.
DELETE FROM rota_note
WHERE (job, line, lease, number) IN (
    SELECT job, line, lease, number
    FROM (
        SELECT job, line, lease, number, row_number() OVER newest AS place,
               sum(length(text)) OVER newest AS characters
        FROM rota_note
        WHERE job IN (SELECT value FROM json_each(:jobs))
        WINDOW newest AS (PARTITION BY job, line ORDER BY lease DESC, number DESC)
    )
    WHERE CASE WHEN line THEN place > :most OR characters > :characters ELSE place > 1 END
);
