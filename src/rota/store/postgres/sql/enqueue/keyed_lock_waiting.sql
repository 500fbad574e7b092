-- Lock these keys where their jobs have not started, and no others; gives the locked keys. Waits
-- for claims and for other producers of the same keys.
SELECT rota.lock_waiting(%(task)s::text, ARRAY(SELECT json_array_elements_text(%(keys)s::json)))
