-- How long this transaction may be idle: as long as what it hands over may take. Else the settings
-- of Rota's connections would end it, as they do where a client is frozen. Locks nothing.
SELECT set_config('idle_in_transaction_session_timeout', %(milliseconds)s::text, true)
