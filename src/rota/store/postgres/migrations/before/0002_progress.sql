-- What handlers tell of their runs: progress, and log lines. Rows are appended; the newest progress
-- of a job counts, and its newest lines. `lease` says which run told it, so that a run which lost its
-- lease never counts before its successor; `number` is which progress, or which line, of that run it
-- was. Nothing here is written for a job whose handler tells nothing.

-- Of jobs that have not finished, and for a while of those that have. Two tables that turn, so that
-- what counts no longer goes by TRUNCATE even under a held horizon.
CREATE SEQUENCE rota.note_turn MINVALUE 0 START 0;
CREATE TABLE rota.note (
    job      bigint NOT NULL,
    lease    bigint NOT NULL,
    number   bigint NOT NULL,
    at       timestamptz NOT NULL,
    fraction double precision,             -- of progress
    attempt  smallint NOT NULL,
    slot     smallint NOT NULL,
    line     boolean NOT NULL,
    level    text,                         -- of a line
    text     text NOT NULL,
    CHECK (CASE WHEN line THEN level IS NOT NULL ELSE fraction BETWEEN 0 AND 1 END)
) PARTITION BY LIST (slot);
CREATE TABLE rota.note_0 PARTITION OF rota.note FOR VALUES IN (0) WITH (autovacuum_enabled = false);
CREATE TABLE rota.note_1 PARTITION OF rota.note FOR VALUES IN (1) WITH (autovacuum_enabled = false);
CREATE INDEX note_order ON rota.note (job, line, lease, number);

-- Of finished jobs, in segments that belong to those of rota.finished: a segment of both is truncated
-- when the retention of all its jobs is over.
CREATE TABLE rota.finished_note (
    job      bigint NOT NULL,
    lease    bigint NOT NULL,
    number   bigint NOT NULL,
    at       timestamptz NOT NULL,
    fraction double precision,
    attempt  smallint NOT NULL,
    segment  smallint NOT NULL,
    line     boolean NOT NULL,
    level    text,
    text     text NOT NULL
) PARTITION BY LIST (segment);
CREATE TABLE rota.finished_note_0 PARTITION OF rota.finished_note FOR VALUES IN (0);
CREATE TABLE rota.finished_note_1 PARTITION OF rota.finished_note FOR VALUES IN (1);
CREATE TABLE rota.finished_note_2 PARTITION OF rota.finished_note FOR VALUES IN (2);
CREATE TABLE rota.finished_note_3 PARTITION OF rota.finished_note FOR VALUES IN (3);
CREATE TABLE rota.finished_note_4 PARTITION OF rota.finished_note FOR VALUES IN (4);
CREATE TABLE rota.finished_note_5 PARTITION OF rota.finished_note FOR VALUES IN (5);
CREATE TABLE rota.finished_note_discarded PARTITION OF rota.finished_note FOR VALUES IN (-1);
CREATE INDEX finished_note_order ON rota.finished_note (job, line, lease, number);
