-- Note that a migration was applied.
INSERT INTO rota.schema_version (version) VALUES (%(version)s::int4)
