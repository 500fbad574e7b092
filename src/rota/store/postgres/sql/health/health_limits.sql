-- No session shall wait for one that only looks. Not behind a transaction pooler, where these
-- settings would stay for other clients.
SELECT set_config('statement_timeout', '5s', false), set_config('lock_timeout', '1s', false)
