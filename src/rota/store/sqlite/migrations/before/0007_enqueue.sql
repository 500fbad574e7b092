-- Nothing: SQLite has no stored functions, so there is no rota.enqueue() as on PostgreSQL. The file
-- keeps the versions of both databases the same.
SELECT 1;
