-- Carry what is in the write-ahead log over into the database file, without waiting for readers.
PRAGMA wal_checkpoint(PASSIVE);
