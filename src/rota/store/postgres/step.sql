-- One step of Rota's tables as one statement, which is applied as a whole or not at all, in
-- whatever way it is sent: `rota migrate` runs it, and `rota migrate --dry-run` prints it.
-- It waits for other migrators, whose lock is freed at the end of the transaction; the lock goes
-- first, so that two of them cannot deadlock. While it waits for a table, all others wait behind
-- it: so it gives up soon, and sooner than the server looks for deadlocks, in which it might end a
-- producer.
DO $rota_step$
DECLARE
    patience CONSTANT text := current_setting('lock_timeout');
    there integer := 0;
BEGIN
    SET LOCAL lock_timeout = '500ms';
    PERFORM pg_advisory_xact_lock(7682003, 0);
    -- By queries: what this session knows of names is from before the lock.
    IF EXISTS (SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
               WHERE nspname = 'rota' AND relname = 'schema_version') THEN
        SELECT max(version) INTO there FROM rota.schema_version;
    END IF;
    IF there IS NULL OR there = 0 AND EXISTS (SELECT FROM pg_namespace WHERE nspname = 'rota') THEN
        RAISE EXCEPTION USING ERRCODE = 'RT002', MESSAGE = '{incomplete}';
    ELSIF there >= {version} THEN
        RAISE NOTICE 'Rota''s tables are of version % already; nothing was changed', there;
    ELSIF there <> {after} THEN
        RAISE EXCEPTION 'this step needs Rota''s tables of version {after}, not %', there
            USING HINT = 'Run `rota migrate`, or print the steps for this database: rota migrate --dry-run';
    ELSE
        EXECUTE $rota_sql$
{sql}
$rota_sql$;
        INSERT INTO rota.schema_version (version) VALUES ({version});
    END IF;
    PERFORM set_config('lock_timeout', patience, true);
END
$rota_step$;
