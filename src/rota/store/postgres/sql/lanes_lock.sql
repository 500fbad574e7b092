-- Stop all claims for a moment, in the order of the lanes' ids.
SELECT id FROM rota.lane ORDER BY id FOR NO KEY UPDATE
