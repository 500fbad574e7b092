-- Whether there is a table of versions at all; unlike reading it, this does not fail where not.
SELECT to_regclass('rota.schema_version') IS NOT NULL
