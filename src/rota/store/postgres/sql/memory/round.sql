-- Append that the rounds of these jobs have ended: nothing before counts any more.
-- Locks nothing.
INSERT INTO rota.memory (slot, job, kind, name)
SELECT (SELECT last_value %% 2 FROM rota.memory_turn), job, 'round', '' FROM unnest(%(jobs)s::int8[]) AS ended (job)
