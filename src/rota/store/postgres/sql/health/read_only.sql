-- Whether this role can only read here: on a standby, where a setting of the role, the database or
-- the URL says so (which Rota's sessions put aside for themselves), or where it may not write down
-- what is done.
-- Locks nothing.
SELECT current_setting('transaction_read_only') = 'on'
    OR (SELECT reset_val = 'on' FROM pg_settings WHERE name = 'default_transaction_read_only')
    OR NOT coalesce(has_table_privilege(to_regclass('rota.audit'), 'INSERT'), true)
