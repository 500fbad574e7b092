-- Stop all claims of plain lanes for a moment, in the order of the lanes' ids; see keyed_turn.sql.
SELECT id FROM rota.lane WHERE NOT of_key ORDER BY id FOR NO KEY UPDATE
