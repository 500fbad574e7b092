-- Whether more than `most` unique keys from `first` to `last` are held. Locks nothing. Walks
-- unique_key's primary key, `most` entries of it.
SELECT count(*) > %(most)s::int8
FROM (SELECT FROM rota.unique_key WHERE key >= %(first)s AND key <= %(last)s LIMIT %(most)s::int8 + 1) AS held
