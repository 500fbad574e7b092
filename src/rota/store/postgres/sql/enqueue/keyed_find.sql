-- Which jobs have these keys, in the order of the keys; null where a key is free. Locks nothing.
-- Walks unique_key's primary key.
SELECT ARRAY(
    SELECT (SELECT job FROM rota.unique_key AS held WHERE held.task = %(task)s AND held.key = wanted.key)
    FROM json_array_elements_text(%(keys)s::json) WITH ORDINALITY AS wanted (key, place)
    ORDER BY wanted.place
)
