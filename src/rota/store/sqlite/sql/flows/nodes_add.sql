-- Store nodes (a JSON array of arrays), whose jobs are stored. A name that is taken (the job that
-- adds nodes was retried by hand, and has added them before) gets the node's number behind it.
INSERT INTO rota_flow_node (id, flow, first_job, last_job, run_at, delay, expects, many, fail_fast, name, task, queue)
SELECT json_extract(value, '$[0]'), :flow, json_extract(value, '$[1]'), json_extract(value, '$[2]'),
       json_extract(value, '$[3]'), json_extract(value, '$[4]'), json_extract(value, '$[5]'),
       json_extract(value, '$[6]'), json_extract(value, '$[7]'),
       CASE WHEN EXISTS (SELECT 1 FROM rota_flow_node AS other
                         WHERE other.flow = :flow AND other.name = json_extract(value, '$[8]'))
            THEN json_extract(value, '$[8]') || '#' || json_extract(value, '$[0]')
            ELSE json_extract(value, '$[8]') END,
       json_extract(value, '$[9]'), json_extract(value, '$[10]')
FROM json_each(:nodes)
WHERE true;
