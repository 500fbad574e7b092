-- Let jobs become due that wait for a signal which is there; how many.
-- Whoever commits last sees the other, but a producer cannot look after its commit, and a worker
-- may die before. So both signals and waits carry the id of their transaction, and those that the
-- newest mark's snapshot did not see are compared.
-- The next mark is written where nothing was locked by anybody else: what was is compared again.
-- A wait counts while the timer has the entry with which it began. The job's time is now, under a
-- new transaction id, which is where stage.sql looks for it.
-- Locks: rows of the timer, SKIP LOCKED. Walks memory_xid from the mark on, and then, for each job,
-- the timer's primary key, memory_order and memory_ref.
WITH mark AS MATERIALIZED (
    SELECT seq, snapshot FROM rota.signal_mark ORDER BY seq DESC LIMIT 1
), fresh AS MATERIALIZED (
    SELECT DISTINCT came.job FROM (
        SELECT memory.job FROM rota.memory
        WHERE memory.xid >= (SELECT pg_snapshot_xmax(snapshot) FROM mark)
        UNION ALL
        SELECT memory.job
        FROM (SELECT pg_snapshot_xip(snapshot) AS xid FROM mark) AS running
        CROSS JOIN LATERAL (
            SELECT memory.job FROM rota.memory WHERE memory.xid = running.xid ORDER BY memory.xid
        ) AS memory
    ) AS came
), asleep AS MATERIALIZED (
    SELECT timer.id, timer.entry
    FROM fresh CROSS JOIN LATERAL (
        -- The newest entry of the job. Without the order the planner would walk all timers for each
        -- job.
        SELECT timer.id, timer.entry, timer.state, timer.run_at FROM rota.timer WHERE timer.id = fresh.job
        ORDER BY timer.id DESC, timer.entry DESC LIMIT 1
    ) AS timer
    WHERE timer.state = 'scheduled' AND timer.run_at > statement_timestamp() AND coalesce((
        SELECT true FROM rota.memory AS wait
        WHERE wait.job = timer.id AND wait.kind = 'wait' AND wait.entry = timer.entry
          AND EXISTS (SELECT FROM rota.mail WHERE mail.job = timer.id AND mail.name = wait.ref)
        LIMIT 1), false)
), locked AS MATERIALIZED (
    SELECT timer.id, timer.entry
    FROM rota.timer
    WHERE timer.id = ANY (ARRAY(SELECT id FROM asleep))
      AND ((timer.id, timer.entry) IN (SELECT id, entry FROM asleep)) IS TRUE
    FOR UPDATE OF timer SKIP LOCKED
), woken AS (
    UPDATE rota.timer SET run_at = statement_timestamp(), xid = pg_current_xact_id()
    WHERE timer.id = ANY (ARRAY(SELECT id FROM locked))
      AND ((timer.id, timer.entry) IN (SELECT id, entry FROM locked)) IS TRUE
), marked AS (
    INSERT INTO rota.signal_mark (seq, snapshot)
    SELECT mark.seq + 1, pg_current_snapshot() FROM mark
    WHERE EXISTS (SELECT FROM fresh)
      AND (SELECT count(*) FROM locked) = (SELECT count(*) FROM asleep)
    ON CONFLICT DO NOTHING
    RETURNING seq
), forgotten AS (
    DELETE FROM rota.signal_mark WHERE seq = (SELECT seq - 10 FROM marked)
)
SELECT count(*) FROM locked
