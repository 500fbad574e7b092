-- Append jobs to the log by COPY, in text format.
COPY rota.log (id, lane, segment, max_attempts, timeout, task, headers, args) FROM STDIN
