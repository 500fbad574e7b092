-- The version of Rota's tables; fails with "undefined table" where there are none.
SELECT max(version) FROM rota.schema_version
