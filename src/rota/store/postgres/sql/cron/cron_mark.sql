-- Say how far an entry has come, and forget the tenth before it: by its number, since under an old
-- snapshot a look for old marks would find the dead ones of a day. Locks nothing but the new row's
-- key.
WITH forgotten AS (
    DELETE FROM rota.cron_mark WHERE entry = %(entry)s::int4 AND seq = %(seq)s::int8 - 10
)
INSERT INTO rota.cron_mark (entry, seq, since, due, last)
VALUES (%(entry)s::int4, %(seq)s::int8, %(since)s::timestamptz, %(due)s::timestamptz,
        %(last)s::timestamptz)
RETURNING entry
