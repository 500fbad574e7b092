-- The version of Rota's tables.
SELECT max(version) FROM rota_schema;
