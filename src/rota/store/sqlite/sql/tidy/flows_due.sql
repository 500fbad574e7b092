-- The next flows whose retention is over. Walks: rota_flow_end_kept from its left end.
SELECT flow.id FROM rota_flow_end AS ended
JOIN rota_flow AS flow ON flow.id = ended.flow AND flow.round = ended.round
WHERE ended.keep_until <= (julianday('now') - 2440587.5) * 86400.0
ORDER BY ended.keep_until LIMIT :size;
