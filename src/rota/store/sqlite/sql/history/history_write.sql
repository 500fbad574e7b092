-- Write the numbers of a minute: `rows` is a JSON array of arrays. Locks: the database. Walks:
-- rota_history by its primary key. It begins with INSERT for the same reason as enqueue.sql.
INSERT INTO rota_history (queue, minute, span, appended, claimed, completed, discarded, available, oldest,
                          total_appended, total_claimed, total_completed, total_discarded)
SELECT json_extract(value, '$[0]'), :label, :span, json_extract(value, '$[1]'), json_extract(value, '$[2]'),
       json_extract(value, '$[3]'), json_extract(value, '$[4]'), json_extract(value, '$[5]'), json_extract(value, '$[6]'),
       json_extract(value, '$[7]'), json_extract(value, '$[8]'), json_extract(value, '$[9]'), json_extract(value, '$[10]')
FROM json_each(:rows)
WHERE true
ON CONFLICT DO NOTHING;
