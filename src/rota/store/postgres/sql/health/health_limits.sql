-- Nobody shall wait for somebody who only looks. Not behind a transaction pooler, where these would
-- stay with somebody else.
SELECT set_config('statement_timeout', '5s', false), set_config('lock_timeout', '1s', false)
