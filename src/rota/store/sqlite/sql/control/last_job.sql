-- The highest id that was ever given; nothing before the first job. Locks nothing.
SELECT seq FROM sqlite_sequence WHERE name = 'rota_job';
