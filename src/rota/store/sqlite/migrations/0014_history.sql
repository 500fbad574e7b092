-- What happened in each minute is kept for a week, and how many jobs ever ended is counted.
-- Expands: older code records no minutes, and does not count how many jobs ended; its housekeeping forgets that number.

-- What happened in each minute (since 1970), by queue, for seven days. The queue '' stands for all together, and its rows
-- say which minutes were recorded; a queue in which nothing happened and nothing waits has no row. The `total_` columns
-- are the running totals from which the next difference is taken. `span` is how many minutes that difference took to come
-- about: more than one after minutes in which no worker looked, 0 where nothing is known of before.
CREATE TABLE rota_history (
    queue           TEXT NOT NULL,
    minute          INTEGER NOT NULL,
    span            INTEGER NOT NULL,
    appended        INTEGER NOT NULL,
    claimed         INTEGER NOT NULL,
    completed       INTEGER NOT NULL,
    discarded       INTEGER NOT NULL,
    available       INTEGER NOT NULL,   -- at the end of the minute
    oldest          REAL,               -- seconds since the job that is next was enqueued
    total_appended  INTEGER NOT NULL,
    total_claimed   INTEGER NOT NULL,
    total_completed INTEGER NOT NULL,
    total_discarded INTEGER NOT NULL,
    PRIMARY KEY (queue, minute)
) STRICT, WITHOUT ROWID;
