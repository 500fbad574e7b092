-- Decide of the nodes that wait for one of these, which have ended: released are those whose
-- conditions hold, and their jobs move from the timer to the log; the others are skipped. Nodes
-- that wait for more are left alone, and so are those of flows that are being stopped. Only what
-- this statement has inserted under the key moves jobs. Gives node, flow, fact, number of jobs, and
-- queue.
-- Jobs with unique keys, and those that wait for their time, become due instead, since staging
-- knows what to do about them.
-- A user who retries the flow changes its round: then what was looked at before that does not
-- count, and is looked at again.
-- Locks: the rows of flows, FOR SHARE, and rows of the timer; it waits for `patience` at the most.
-- Walks flow_edge_after and flow_edge's primary key to the newest node that has not ended, and the
-- timer's primary key over the ids of the node's jobs.
WITH patience AS MATERIALIZED (
    SELECT set_config('lock_timeout', coalesce(%(patience)s::text, current_setting('lock_timeout')), true)
), next AS MATERIALIZED (
    SELECT DISTINCT edge.node
    FROM patience CROSS JOIN (SELECT unnest(%(nodes)s::int8[])) AS ended (id)
    CROSS JOIN LATERAL (SELECT node FROM rota.flow_edge WHERE flow_edge.after = ended.id) AS edge
), ripe AS MATERIALIZED (
    SELECT node.*
    FROM next CROSS JOIN LATERAL (SELECT * FROM rota.flow_node WHERE flow_node.id = next.node) AS node
    WHERE NOT EXISTS (SELECT FROM rota.flow_fact AS fact WHERE fact.node = node.id AND fact.round = node.round)
      AND NOT EXISTS (SELECT FROM rota.flow_stop AS stop WHERE stop.flow = node.flow AND stop.since <= clock_timestamp())
      AND coalesce((
        SELECT false FROM rota.flow_edge AS edge
        WHERE edge.node = node.id AND NOT EXISTS (
            SELECT FROM rota.flow_node AS before
            JOIN rota.flow_fact AS fact ON fact.node = before.id AND fact.round = before.round AND fact.fact = 'ended'
            WHERE before.id = edge.after)
        ORDER BY edge.node DESC, edge.after DESC LIMIT 1), true)
), home AS MATERIALIZED (
    SELECT DISTINCT flow.id, flow.round FROM ripe JOIN rota.flow ON flow.id = ripe.flow
), locked AS MATERIALIZED (
    SELECT flow.id FROM home JOIN rota.flow ON flow.id = home.id AND flow.round = home.round
    FOR SHARE OF flow
), verdict AS MATERIALIZED (
    SELECT ripe.*, CASE
        WHEN came.unmet IS NOT NULL THEN came.unmet
        WHEN came.hopes AND NOT came.failed THEN 'nothing that it waited for has failed' END AS reason
    FROM locked JOIN ripe ON ripe.flow = locked.id
    CROSS JOIN LATERAL (
        SELECT min(before.name || CASE fact.outcome WHEN 'failed' THEN ' has ' ELSE ' was ' END || fact.outcome) FILTER (
                   WHERE edge.condition = 'completed' AND fact.outcome <> 'completed') AS unmet,
               bool_or(edge.condition = 'failed') AS hopes,
               bool_or(edge.condition = 'failed' AND fact.outcome = 'failed') AS failed
        FROM rota.flow_edge AS edge
        JOIN rota.flow_node AS before ON before.id = edge.after
        JOIN rota.flow_fact AS fact ON fact.node = before.id AND fact.round = before.round AND fact.fact = 'ended'
        WHERE edge.node = ripe.id
    ) AS came
), skipped AS (
    INSERT INTO rota.flow_fact (node, round, fact, outcome, reason)
    SELECT id, round, 'ended', 'skipped', reason FROM verdict WHERE reason IS NOT NULL ORDER BY id
    ON CONFLICT DO NOTHING
    RETURNING node
), released AS (
    INSERT INTO rota.flow_fact (node, round, fact)
    SELECT id, round, 'released' FROM verdict WHERE reason IS NULL ORDER BY id
    ON CONFLICT DO NOTHING
    RETURNING node
), waiting AS MATERIALIZED (
    SELECT timer.ctid AS place, timer.unique_key IS NULL AND node.delay IS NULL AND node.run_at IS NULL AS at_once,
           coalesce(node.run_at, clock_timestamp() + make_interval(secs => coalesce(node.delay, 0))) AS run_at
    FROM released JOIN verdict AS node ON node.id = released.node
    CROSS JOIN LATERAL (
        SELECT timer.ctid, timer.unique_key FROM rota.timer
        WHERE timer.id BETWEEN node.first_job AND node.last_job
          AND timer.headers ->> 'rota.node' = node.id::text
          AND timer.state = 'scheduled' AND timer.run_at > now() + interval '50 years'
        ORDER BY timer.id, timer.entry
    ) AS timer
), gone AS (
    DELETE FROM rota.timer USING waiting WHERE timer.ctid = waiting.place AND waiting.at_once
    RETURNING timer.*
), due AS (
    UPDATE rota.timer SET run_at = waiting.run_at, xid = pg_current_xact_id()
    FROM waiting WHERE timer.ctid = waiting.place AND NOT waiting.at_once
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
SELECT node.id, node.flow, 'released', node.expects, node.queue
FROM released JOIN verdict AS node ON node.id = released.node
UNION ALL
SELECT node.id, node.flow, 'skipped', node.expects, node.queue
FROM skipped JOIN verdict AS node ON node.id = skipped.node
