-- The tables belong to this cluster now. There may be two rows: that of `rota migrate`, and a
-- restored one.
WITH gone AS (
    DELETE FROM rota.origin
)
INSERT INTO rota.origin SELECT system_identifier FROM pg_control_system()
