-- Take the unique keys of jobs by COPY, in text format; an error where one of them is taken.
-- Locks: as in keyed_now.sql.
COPY rota.unique_key (job, lane, entry, until, while_waiting, state, task, key) FROM STDIN
