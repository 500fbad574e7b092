-- Append for what jobs have just gone to sleep, one row for each sleep and wait: it ends when it
-- was said to, else so many `seconds` after the beginning of the sleep, which is `delay` before the
-- time of its timer.
-- Locks nothing. Walks the timer's primary key, for each job from its right end.
INSERT INTO rota.memory (slot, xid, job, kind, name, ref, entry, until)
SELECT (SELECT last_value %% 2 FROM rota.memory_turn), CASE WHEN pause.kind = 'wait' THEN pg_current_xact_id() END, pause.job, pause.kind,
       pause.name, pause.ref, timer.entry,
       coalesce(pause.until, timer.run_at + make_interval(secs => pause.seconds - pause.delay))
FROM unnest(%(jobs)s::int8[], %(kinds)s::text[], %(names)s::text[], %(refs)s::text[], %(delays)s::float8[],
            %(lasting)s::float8[], %(untils)s::timestamptz[])
    AS pause (job, kind, name, ref, delay, seconds, until)
CROSS JOIN LATERAL (
    SELECT entry, run_at FROM rota.timer WHERE timer.id = pause.job ORDER BY id DESC, entry DESC LIMIT 1
) AS timer
