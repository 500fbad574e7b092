-- Keep what counts of the table of notes that is left: the newest progress of each job, and its
-- newest lines, up to `most` and so many characters. Those of finished jobs go to the segment their
-- job lies in, those of others to the current table; nothing is kept of jobs that are gone. The
-- table is locked against writers. What was written twice, after a lost connection, is kept once.
-- Reads the whole table that is left; walks finished_job, log_job and the timer's primary key.
WITH told AS MATERIALIZED (
    SELECT DISTINCT ON (job, line, lease, number) note.*
    FROM rota.note WHERE slot <> (SELECT last_value %% 2 FROM rota.note_turn)
    ORDER BY job, line, lease, number
), placed AS MATERIALIZED (
    SELECT told.*, row_number() OVER newest AS place, sum(length(text)) OVER newest AS characters
    FROM told
    WINDOW newest AS (PARTITION BY job, line ORDER BY lease DESC, number DESC)
), kept AS MATERIALIZED (
    SELECT placed.*, (
        SELECT finished.segment FROM rota.finished WHERE finished.id = placed.job LIMIT 1) AS segment
    FROM placed
    WHERE CASE WHEN line THEN place <= %(most)s::int8 AND characters <= %(characters)s::int8
               ELSE place = 1 END
), ended AS (
    INSERT INTO rota.finished_note (segment, job, lease, attempt, line, number, at, fraction, level,
                                    text)
    SELECT segment, job, lease, attempt, line, number, at, fraction, level, text
    FROM kept WHERE segment IS NOT NULL
)
INSERT INTO rota.note (slot, job, lease, attempt, line, number, at, fraction, level, text)
SELECT (SELECT last_value %% 2 FROM rota.note_turn), job, lease, attempt, line, number, at, fraction,
       level, text
FROM kept
WHERE segment IS NULL AND (
    EXISTS (SELECT FROM rota.log WHERE log.id = kept.job)
    OR EXISTS (SELECT FROM rota.timer WHERE timer.id = kept.job))
