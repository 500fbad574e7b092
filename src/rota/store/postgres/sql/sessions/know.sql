-- A session knows other tasks than before: its cluster has come to have, or to lack, what they
-- need. That is rare, so its dead rows are few. Locks the session's row, as its end does.
UPDATE rota.session SET tasks = %(tasks)s::text[] WHERE id = %(session)s::int8
