-- How the file is written: "wal" with a write-ahead log. Locks nothing.
SELECT journal_mode FROM pragma_journal_mode;
