-- Remove an entry, and with it its marks. Waits for who makes its jobs just now.
DELETE FROM rota.cron_entry WHERE name = %(name)s
RETURNING id
