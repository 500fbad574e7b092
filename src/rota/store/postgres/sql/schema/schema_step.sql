-- One step of the tables as one statement, which is applied as a whole or not at all, in whatever way it is
-- sent: `rota migrate` runs it, and `rota migrate --dry-run` prints it. {braces} are filled in.
-- It waits for other migrators, whose lock is freed at the end of the transaction; the lock goes first, so
-- that two of them cannot deadlock. What the step itself locks says its file.
DO $rota_step$
DECLARE
    there integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(7682003, 0);
    IF to_regclass('rota.schema_version') IS NOT NULL THEN
        SELECT max(version) INTO there FROM rota.schema_version;
    END IF;
    IF there >= {version} THEN
        RAISE NOTICE 'Rota''s tables are of version % already; nothing was changed', there;
        RETURN;
    END IF;
    IF there IS NULL OR there = 0 AND to_regnamespace('rota') IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'RT002', MESSAGE = '{incomplete}';
    END IF;
    IF there <> {after} THEN
        RAISE EXCEPTION 'this step needs Rota''s tables of version {after}, not %', there
            USING HINT = 'Run `rota migrate`, or print the steps for this database: rota migrate --dry-run';
    END IF;
    EXECUTE $rota_sql$
{sql}
$rota_sql$;
    INSERT INTO rota.schema_version (version) VALUES ({version});
END
$rota_step$;
