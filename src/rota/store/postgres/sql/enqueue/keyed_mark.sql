-- Make it known to claims that a lane is a unique lane, before its first job with a unique key is
-- stored.
-- A claim locks the lane before it looks: it sees either the mark, or no such job.
-- Locks: the lane, as a claim does. Done once for each lane.
UPDATE rota.lane SET keyed = true WHERE id = %(lane)s::int4 AND NOT keyed
