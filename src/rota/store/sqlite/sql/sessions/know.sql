-- A session knows other tasks than before: its cluster has come to have, or to lack, what they
-- need. Locks the database for a moment. Walks rota_session by its primary key.
UPDATE rota_session SET tasks = :tasks WHERE id = :session;
