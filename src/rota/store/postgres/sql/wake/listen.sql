-- Hear of commits that made jobs available.
LISTEN rota
