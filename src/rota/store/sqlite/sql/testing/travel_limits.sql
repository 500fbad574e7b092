-- Set back when jobs started whose rate is limited; the file has one writer, which is this
-- transaction. Locks: the database. Walks: rota_limit_start.
UPDATE rota_limit_start SET at = at - :seconds;
