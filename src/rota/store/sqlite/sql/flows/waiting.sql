-- The jobs of a node that wait for its release.
SELECT id FROM rota_job
WHERE id BETWEEN :first AND :last AND state = 'scheduled'
  AND scheduled_at > (julianday('now') - 2440587.5) * 86400.0 + 50 * 31557600.0
  AND headers IS NOT NULL AND json_extract(headers, '$."rota.node"') = CAST(:node AS TEXT)
ORDER BY id;
