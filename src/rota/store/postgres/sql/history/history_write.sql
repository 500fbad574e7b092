-- Write the numbers of a minute, and note that this is done. A queue whose row is there already
-- keeps that.
-- Locks nothing that another one waits for, while this transaction has the turn of the
-- housekeepers.
WITH written AS (
    INSERT INTO rota.history (minute, total_appended, total_claimed, total_completed, total_discarded, span,
                              appended, claimed, completed, discarded, available, oldest, segment, queue)
    SELECT to_timestamp(%(label)s::int8 * 60), total_appended, total_claimed, total_completed, total_discarded,
           %(span)s::int4, appended, claimed, completed, discarded, available, oldest, %(segment)s::int2, queue
    FROM unnest(%(queues)s::text[], %(appended)s::int4[], %(claimed)s::int4[], %(completed)s::int4[],
                %(discarded)s::int4[], %(available)s::int4[], %(oldest)s::float4[], %(total_appended)s::int8[],
                %(total_claimed)s::int8[], %(total_completed)s::int8[], %(total_discarded)s::int8[])
        AS row (queue, appended, claimed, completed, discarded, available, oldest, total_appended, total_claimed,
                total_completed, total_discarded)
    ON CONFLICT DO NOTHING
    RETURNING queue
)
SELECT setval('rota.history_recorded', %(label)s::int8) FROM (SELECT count(*) FROM written) AS done
