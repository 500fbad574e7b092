-- Repeat the leases that are still held in the current table; they keep their ids. The table that
-- is to be truncated is locked, so no claim and no settlement is under way in it.
INSERT INTO rota.lease (slot, id, session, claimed_at, lane, jobs, limits)
SELECT (SELECT last_value % 2 FROM rota.lease_turn), id, session, claimed_at, lane, jobs, limits
FROM rota.lease
WHERE slot <> (SELECT last_value % 2 FROM rota.lease_turn)
