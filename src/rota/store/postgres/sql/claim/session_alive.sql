-- Whether a session was not declared dead, for a claim that did not get its lane. Takes no lock: that
-- would make a transaction to be flushed to disk of each look. Who gets a lane has locked the session.
SELECT id FROM rota.session WHERE id = %(session)s::int8
