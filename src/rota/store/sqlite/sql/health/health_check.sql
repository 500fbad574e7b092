-- Up to ten faults of the file, or 'ok'. Reads all of it; holds up nobody who writes.
PRAGMA quick_check(10);
