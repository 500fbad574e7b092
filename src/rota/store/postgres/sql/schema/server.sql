-- What this server is, where it says so: its version, and what the services that only speak
-- PostgreSQL's language add to the catalog. Locks nothing, and reads no table of Rota's.
SELECT
    version(),
    to_regclass('sys.iam_pg_role_mappings') IS NOT NULL AS dsql,
    to_regclass('rds_aurora.limitless_subclusters') IS NOT NULL AS limitless,
    coalesce(current_setting('citus.enable_schema_based_sharding', true) = 'on', false) AS sharded
