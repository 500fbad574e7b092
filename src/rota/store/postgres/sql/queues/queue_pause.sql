-- Pause or resume a queue. Claims read this row without a lock and see it with their next one.
UPDATE rota.queue SET paused = %(paused)s WHERE name = %(queue)s AND paused <> %(paused)s
RETURNING name
