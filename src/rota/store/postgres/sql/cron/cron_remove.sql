-- Remove an entry, and with it its marks. Waits for a worker that is making its jobs.
DELETE FROM rota.cron_entry WHERE name = %(name)s
RETURNING id
