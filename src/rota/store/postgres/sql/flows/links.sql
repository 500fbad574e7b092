-- End those of these nodes that are links of a chain, and release what waits for them, in the
-- transaction that has just completed their jobs: nodes of one job, after whose success other
-- single jobs begin at once, which wait for nothing else.
-- What end.sql and release.sql ask is asked here of the simplest case alone; every other one is
-- left to them, after the commit.
-- Gives the nodes that have ended, and wakes a sleeping worker for each queue: see flows/wake.sql.
-- Locks: the jobs that wait, and the rows of nodes and flows FOR SHARE, against retries by hand.
-- What another transaction has locked is left out, so that a settlement waits for nobody. Walks
-- flow_edge_after, flow_arrival_node, and the primary keys of flow_edge, flow_fact and the timer.
WITH node AS MATERIALIZED (
    SELECT node.id, node.flow, node.round, node.touched, flow.round AS flow_round
    FROM (SELECT DISTINCT unnest(%(nodes)s::text::int8[])) AS asked (id)
    CROSS JOIN LATERAL (SELECT * FROM rota.flow_node WHERE flow_node.id = asked.id) AS node
    CROSS JOIN LATERAL (SELECT * FROM rota.flow WHERE flow.id = node.flow) AS flow
    CROSS JOIN LATERAL (
        SELECT sum(completed) AS completed, sum(failed) AS failed, sum(cancelled) AS cancelled
        FROM rota.flow_arrival WHERE flow_arrival.node = node.id
    ) AS came
    WHERE node.expects = 1 AND came.completed >= 1 AND came.failed = 0 AND came.cancelled = 0
      AND NOT EXISTS (SELECT FROM rota.flow_stop AS stop WHERE stop.flow = node.flow)
      AND NOT EXISTS (
        SELECT FROM rota.flow_fact AS fact WHERE fact.node = node.id AND fact.round = node.round AND fact.fact = 'ended')
), edge AS MATERIALIZED (
    SELECT edge.*
    FROM node CROSS JOIN LATERAL (
        SELECT * FROM rota.flow_edge WHERE flow_edge.after = node.id LIMIT %(most)s::int4 + 1
    ) AS edge
), waiting AS MATERIALIZED (
    SELECT edge.after, next.id, next.round, next.queue, timer.ctid AS place
    FROM edge
    CROSS JOIN LATERAL (SELECT * FROM rota.flow_node WHERE flow_node.id = edge.node) AS next
    JOIN rota.timer ON timer.id = next.first_job
    WHERE edge.condition <> 'failed'
      AND next.expects = 1 AND next.delay IS NULL AND next.run_at IS NULL
      AND timer.state = 'scheduled' AND timer.run_at > now() + interval '50 years'
      AND timer.unique_key IS NULL AND timer.headers ->> 'rota.node' = next.id::text
      AND NOT EXISTS (SELECT FROM rota.flow_edge AS other WHERE other.node = edge.node AND other.after <> edge.after)
      AND NOT EXISTS (SELECT FROM rota.flow_fact AS fact WHERE fact.node = next.id AND fact.round = next.round)
    FOR UPDATE OF timer SKIP LOCKED
), locked AS MATERIALIZED (
    SELECT node.id, node.round
    FROM node
    JOIN rota.flow_node AS same ON same.id = node.id AND same.touched = node.touched AND same.round = node.round
    JOIN rota.flow AS home ON home.id = node.flow AND home.round = node.flow_round
    WHERE (SELECT count(*) FROM waiting WHERE waiting.after = node.id) BETWEEN 1 AND %(most)s::int4
      AND (SELECT count(*) FROM waiting WHERE waiting.after = node.id)
        = (SELECT count(*) FROM edge WHERE edge.after = node.id)
    FOR SHARE OF same, home SKIP LOCKED
), ended AS (
    INSERT INTO rota.flow_fact (node, round, fact, outcome)
    SELECT id, round, 'ended', 'completed' FROM locked ORDER BY id
    ON CONFLICT DO NOTHING
    RETURNING node
), released AS (
    INSERT INTO rota.flow_fact (node, round, fact)
    SELECT waiting.id, waiting.round, 'released'
    FROM ended JOIN waiting ON waiting.after = ended.node ORDER BY waiting.id
    ON CONFLICT DO NOTHING
    RETURNING node
), begun AS MATERIALIZED (
    SELECT waiting.place, waiting.queue FROM released JOIN waiting ON waiting.id = released.node
), gone AS (
    DELETE FROM rota.timer USING begun WHERE timer.ctid = begun.place
    RETURNING timer.*
), job AS (
    INSERT INTO rota.log (id, enqueued_at, lane, entry, timeout, segment, attempt, max_attempts,
                          task, args, errors, unique_key, iteration, last_run, headers)
    SELECT id, enqueued_at, lane, entry, timeout, (SELECT last_value %% 4 FROM rota.log_turn),
           attempt, max_attempts, task, args, errors, unique_key, iteration, last_run, headers
    FROM gone ORDER BY id
), counted AS (
    INSERT INTO rota.tally (slot, lane, state, jobs)
    SELECT (SELECT last_value %% 2 FROM rota.tally_turn), lane, state, -count(*)
    FROM gone GROUP BY lane, state
)
SELECT node, NULL FROM ended
UNION ALL
SELECT NULL,
    CASE WHEN wake IS NULL THEN false
         WHEN pg_try_advisory_lock(7682001, hashtext(wake))
         THEN pg_advisory_unlock(7682001, hashtext(wake)) IS NULL
         ELSE pg_notify('rota', concat('+', pg_current_xact_id(), ' ', wake)) IS NULL END
FROM (SELECT DISTINCT queue FROM begun) AS woken (wake)
