-- Tag the transaction in which a handler's job will be completed: the setting ends with it, however
-- it ends. Locks nothing, and takes no snapshot: the handler may still set an isolation level.
SET LOCAL rota.tag = 'here'
