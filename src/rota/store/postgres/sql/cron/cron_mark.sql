-- Say how far an entry has come. Locks nothing but the new row's key.
INSERT INTO rota.cron_mark (entry, seq, since, due, last)
VALUES (%(entry)s::int4, %(seq)s::int8, %(since)s::timestamptz, %(due)s::timestamptz,
        %(last)s::timestamptz)
RETURNING entry
