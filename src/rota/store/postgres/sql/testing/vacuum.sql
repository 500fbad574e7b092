-- Give back what rolled back tests have left in tables that no autovacuum comes to: workers empty
-- these, and a tests' database may never see one. Waits for no lock, and keeps nothing waiting but
-- another VACUUM and the turn of a ring.
VACUUM (SKIP_LOCKED, TRUNCATE false)
    rota.log, rota.cursor, rota.lease, rota.limit_start, rota.tally, rota.note, rota.memory
