-- The library's version. Locks nothing.
SELECT sqlite_version();
