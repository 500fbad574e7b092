-- Whether a moment is past by the clock of the server, which is the one that counts. Locks nothing.
SELECT %(at)s::timestamptz <= clock_timestamp()
