-- Publications and subscriptions of this database that cover tables of Rota's: kind, name, whether
-- a publication is for all tables, and the tables that it names itself (none: it has the whole
-- schema).
-- Reads the catalogs, and locks nothing.
SELECT 'publication', publication.pubname::text, publication.puballtables,
       ARRAY(SELECT entry.relname::text FROM pg_publication_rel AS named
             JOIN pg_class AS entry ON entry.oid = named.prrelid
             WHERE named.prpubid = publication.oid
               AND entry.relnamespace = to_regnamespace('rota') ORDER BY entry.relname)
FROM pg_publication AS publication
WHERE EXISTS (SELECT FROM pg_publication_tables AS covered
              WHERE covered.pubname = publication.pubname AND covered.schemaname = 'rota')
UNION ALL
SELECT DISTINCT 'subscription', subscription.subname::text, false, ARRAY[]::text[]
FROM pg_subscription_rel AS received
JOIN pg_class AS entry ON entry.oid = received.srrelid
JOIN pg_subscription AS subscription ON subscription.oid = received.srsubid
WHERE entry.relnamespace = to_regnamespace('rota')
ORDER BY 1, 2
