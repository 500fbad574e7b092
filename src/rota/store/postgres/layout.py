"""How many tables each ring has: `schema.sql` makes them, and `rings.py` turns them."""

LOG_SEGMENTS = 4
CURSOR_SLOTS = 2
LEASE_SLOTS = 2
TALLY_SLOTS = 2
MARK_SLOTS = 2
NOTE_SLOTS = 2
MEMORY_SLOTS = 2
LIMIT_SLOTS = 2
FINISHED_SEGMENTS = 6
HISTORY_SEGMENTS = 5
