-- What the code said last of these entries (a JSON array of names). Locks nothing.
SELECT name, declaration FROM rota_cron_entry
WHERE name IN (SELECT value FROM json_each(:names))
ORDER BY name;
