-- Up to ten faults of the file, or 'ok'. Reads all of it, and holds up no writer.
PRAGMA quick_check(10);
