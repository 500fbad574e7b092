-- Repeat in the current table what still lies in its limit's window. The table that is to be
-- truncated is locked, and no claim of key lanes is under way.
INSERT INTO rota.limit_start (slot, limit_id, at, jobs)
SELECT (SELECT last_value % 2 FROM rota.limit_turn), start.limit_id, start.at, start.jobs
FROM rota.limit_start AS start JOIN rota.limit_key ON limit_key.id = start.limit_id
WHERE start.slot <> (SELECT last_value % 2 FROM rota.limit_turn)
  AND start.at > clock_timestamp() - make_interval(secs => limit_key.rate_seconds::float8)
