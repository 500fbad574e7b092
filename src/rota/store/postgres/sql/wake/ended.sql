-- Tell the processes that wait which jobs have ended, when this transaction commits. Several ids to
-- a notification, which may have 8000 bytes.
SELECT pg_notify('rota_ended', part) FROM unnest(%(parts)s::text[]) AS part
