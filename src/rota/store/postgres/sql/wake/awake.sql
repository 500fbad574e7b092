-- Say that no worker of this connection is asleep: it holds no other locks of a session.
SELECT pg_advisory_unlock_all()
