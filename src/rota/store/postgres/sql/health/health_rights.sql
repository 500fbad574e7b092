-- The rights that a worker needs and this role lacks, as docs/operate/tables.md grants them: one
-- row for the schema, and one for each table, view and sequence that lacks any. Reads the catalogs,
-- and locks nothing.
SELECT 'schema', schema.nspname::text, ARRAY['USAGE']
FROM pg_namespace AS schema
WHERE schema.nspname = 'rota' AND NOT has_schema_privilege(schema.oid, 'USAGE')
UNION ALL
SELECT found.kind, entry.relname::text, array_agg(needed.name ORDER BY needed.position)
FROM pg_class AS entry
JOIN pg_namespace AS schema ON schema.oid = entry.relnamespace
JOIN (VALUES ('r'::"char", 'table'), ('p', 'table'), ('v', 'view'), ('S', 'sequence'))
    AS found (relkind, kind) ON found.relkind = entry.relkind
CROSS JOIN LATERAL unnest(CASE found.kind
    WHEN 'table' THEN ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE']
    WHEN 'view' THEN ARRAY['SELECT']
    ELSE ARRAY['USAGE', 'SELECT', 'UPDATE'] END) WITH ORDINALITY AS needed (name, position)
WHERE schema.nspname = 'rota'
  AND NOT CASE found.kind WHEN 'sequence' THEN has_sequence_privilege(entry.oid, needed.name)
          ELSE has_table_privilege(entry.oid, needed.name) END
GROUP BY found.kind, entry.relname
ORDER BY 1, 2
