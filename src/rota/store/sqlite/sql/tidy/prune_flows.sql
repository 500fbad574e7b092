-- Remove these flows (a JSON array of ids).
DELETE FROM rota_flow WHERE id IN (SELECT value FROM json_each(:flows));
