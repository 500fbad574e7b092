-- Whether this is the transaction that tag.sql has tagged. Locks nothing, walks no index.
SELECT coalesce(current_setting('rota.tag', true) = 'here', false)
