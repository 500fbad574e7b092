-- Whether transactions only read here: on a standby, or where a setting of the role or the database says so.
-- Locks nothing.
SELECT current_setting('transaction_read_only') = 'on'
