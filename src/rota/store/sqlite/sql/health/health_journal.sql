-- The journal mode: with 'wal', which Rota needs, reading goes on beside writing. Changes nothing.
PRAGMA journal_mode;
