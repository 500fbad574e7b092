-- How many jobs there are (in a state, of a queue, of a task, of the unique keys from `first` to
-- `last`; null means any). Reads them all. Locks nothing. Of a key counts what list_subject.sql and
-- list_finished.sql list.
SELECT count(*)
FROM rota.job
WHERE (%(state)s::text IS NULL OR state = %(state)s)
  AND (%(queue)s::text IS NULL OR queue = %(queue)s)
  AND (%(task)s::text IS NULL OR task = %(task)s)
  AND (%(first)s::text IS NULL
    OR (unique_key COLLATE "C" BETWEEN %(first)s AND %(last)s
      AND (state IN ('completed', 'discarded', 'cancelled') OR EXISTS (
          SELECT FROM rota.unique_key AS held
          WHERE held.key = job.unique_key AND held.task = job.task AND held.job = job.id
            AND held.state <> 'ended'))))
