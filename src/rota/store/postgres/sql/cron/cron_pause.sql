-- Pause or resume an entry that is locked; gives nothing where nothing changes.
UPDATE rota.cron_entry SET paused = %(paused)s::boolean
WHERE name = %(name)s AND paused <> %(paused)s::boolean
RETURNING id
