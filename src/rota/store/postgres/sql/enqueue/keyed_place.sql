-- The segment to which jobs with unique keys are copied. Waking as in enqueue.sql.
SELECT (SELECT last_value %% 4 FROM rota.log_turn),
       CASE WHEN %(wake)s::text IS NULL THEN false
            WHEN pg_try_advisory_lock(7682001, hashtext(%(wake)s))
            THEN pg_advisory_unlock(7682001, hashtext(%(wake)s)) IS NULL
            ELSE pg_notify('rota', concat_ws(' ', pg_current_xact_id(), %(wake)s)) IS NULL END
