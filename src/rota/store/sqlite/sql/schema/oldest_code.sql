-- The oldest version whose code works with these tables. It is asked where the tables are newer
-- than the code.
SELECT version FROM rota_oldest_code;
