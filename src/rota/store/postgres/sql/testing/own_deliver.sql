-- deliver.sql for one job of this transaction. Walks timer_xid and memory_order.
UPDATE rota.timer SET run_at = clock_timestamp()
WHERE timer.xid = pg_current_xact_id() AND timer.id = %(job)s::int8 AND timer.state = 'scheduled'
  AND timer.run_at > clock_timestamp()
  AND EXISTS (
    SELECT FROM rota.memory AS wait
    WHERE wait.job = timer.id AND wait.kind = 'wait' AND wait.entry = timer.entry
      AND EXISTS (SELECT FROM rota.mail WHERE mail.job = timer.id AND mail.name = wait.ref))
