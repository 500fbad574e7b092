-- Whether a session was not declared dead, for a claim that did not get its lane. Takes no lock:
-- that would make each look a transaction to be flushed to disk. A claim that gets its lane has
-- locked the session.
SELECT id FROM rota.session
WHERE id = %(session)s::int8 AND timeline = (SELECT timeline FROM rota.here)
