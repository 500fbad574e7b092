-- Note that the tables now have this version.
INSERT INTO rota_schema (version, applied_at)
VALUES (:version, (julianday('now') - 2440587.5) * 86400.0);
