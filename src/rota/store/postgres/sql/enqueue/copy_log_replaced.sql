-- Append new entries of jobs with a unique key to the log by COPY, in text format.
COPY rota.log (id, lane, entry, segment, max_attempts, timeout, task, headers, unique_key, args) FROM STDIN
