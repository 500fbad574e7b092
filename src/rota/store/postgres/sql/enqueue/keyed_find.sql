-- Which jobs have these keys. Locks nothing. Walks unique_key's primary key.
SELECT key, job FROM rota.unique_key WHERE task = %(task)s AND key = ANY (ARRAY(SELECT json_array_elements_text(%(keys)s::json)))
