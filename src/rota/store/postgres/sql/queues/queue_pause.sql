-- Pause or resume a queue. Claims read this row without a lock: the next one sees the change.
UPDATE rota.queue SET paused = %(paused)s WHERE name = %(queue)s AND paused <> %(paused)s
RETURNING name
