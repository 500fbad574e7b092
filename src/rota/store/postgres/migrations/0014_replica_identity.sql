-- Tables without a primary key name their rows by all columns, so that under a publication they can still
-- be changed. Changes the catalog alone, under a short exclusive lock on each of these tables.
DO $$
DECLARE
    one regclass;
BEGIN
    FOR one IN
        SELECT entry.oid FROM pg_class AS entry
        WHERE entry.relnamespace = 'rota'::regnamespace AND entry.relkind IN ('r', 'p')
          AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = entry.oid AND indisprimary)
        ORDER BY entry.relname
    LOOP
        EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', one);
    END LOOP;
END
$$;
