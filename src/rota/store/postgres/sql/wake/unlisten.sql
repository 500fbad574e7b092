-- Hear no more of commits: each notification wakes every connection that listens, whatever it waits
-- for.
UNLISTEN rota
