-- One step of Rota's tables as `rota migrate --dry-run` prints it. It locks the file for writers.
-- The check at the beginning says what is wrong, and the one at the end takes everything back where
-- a client has gone on in spite of it, as SQLite's shell does without -bail.
BEGIN IMMEDIATE;
CREATE TEMP TABLE rota_step (
    fits INTEGER NOT NULL
        CONSTRAINT "{refusal}" CHECK (fits)
);
INSERT INTO rota_step {fits};

{sql}

INSERT INTO rota_schema (version, applied_at)
VALUES ({version}, (julianday('now') - 2440587.5) * 86400.0);
INSERT OR ROLLBACK INTO rota_step SELECT count(*) > 0 FROM rota_step;
DROP TABLE rota_step;
COMMIT;
