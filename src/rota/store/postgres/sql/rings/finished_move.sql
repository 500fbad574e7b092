-- Move the jobs of some blocks of a segment that are kept to the current segment, with what their
-- handlers told and remember; how many. The segment is not the current one, and stays so: the turn
-- is held.
-- Locks: the rows. Walks: the blocks, finished_note_order and finished_memory_order, job by job.
-- Whoever acts on one of these jobs at the same moment, by hand, is told to try again.
WITH moved AS (
    UPDATE rota.finished SET segment = (SELECT last_value %% 6 FROM rota.finished_turn)
    WHERE segment = %(segment)s::int2 AND ctid >= %(first)s::tid AND ctid < %(until)s::tid
      AND keep_until > now()
    RETURNING id
), told AS (
    UPDATE rota.finished_note SET segment = (SELECT last_value %% 6 FROM rota.finished_turn)
    WHERE segment = %(segment)s::int2 AND job = ANY (ARRAY(SELECT id FROM moved))
), remembered AS (
    UPDATE rota.finished_memory SET segment = (SELECT last_value %% 6 FROM rota.finished_turn)
    WHERE segment = %(segment)s::int2 AND job = ANY (ARRAY(SELECT id FROM moved))
)
SELECT count(*) FROM moved
