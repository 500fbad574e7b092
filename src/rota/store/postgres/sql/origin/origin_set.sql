-- The tables belong to this cluster now.
UPDATE rota.origin SET system_identifier = (SELECT system_identifier FROM pg_control_system())
