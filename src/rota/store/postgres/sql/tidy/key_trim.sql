-- Forget keys whose period is over and whose jobs have ended. Walks unique_key_until.
DELETE FROM rota.unique_key WHERE until <= now() AND state = 'ended'
