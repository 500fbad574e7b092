-- The version of Rota's tables, and whether Citus is here; fails with "undefined table" where there
-- are none.
SELECT max(version), to_regclass('pg_dist_partition') IS NOT NULL FROM rota.schema_version
