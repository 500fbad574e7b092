-- Forget what these jobs of a node (a JSON array of ids) have returned to others: they run again.
-- Locks: the database. Walks: rota_flow_result by its primary key.
DELETE FROM rota_flow_result WHERE node = :node AND job IN (SELECT value FROM json_each(:jobs));
