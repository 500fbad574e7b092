-- Let jobs (a JSON array of ids) leave the nodes of flows that they belonged to: these have ended,
-- and the jobs run alone.
UPDATE rota_job SET headers = json_remove(headers, '$."rota.node"')
WHERE id IN (SELECT value FROM json_each(:jobs));
