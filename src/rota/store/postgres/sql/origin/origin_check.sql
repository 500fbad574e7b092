-- Whether the tables come from another cluster (dump and restore), whose transaction ids mean
-- nothing here.
SELECT EXISTS (
    SELECT FROM rota.origin, pg_control_system() AS here
    WHERE origin.system_identifier <> here.system_identifier)
