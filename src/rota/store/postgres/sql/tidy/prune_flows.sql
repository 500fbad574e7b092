-- Remove these flows, and all that is known of them.
WITH node AS (
    DELETE FROM rota.flow_node WHERE flow = ANY (%(flows)s::int8[]) RETURNING id
), edge AS (
    DELETE FROM rota.flow_edge WHERE node = ANY (ARRAY(SELECT id FROM node))
), arrival AS (
    DELETE FROM rota.flow_arrival WHERE node = ANY (ARRAY(SELECT id FROM node))
), fact AS (
    DELETE FROM rota.flow_fact WHERE node = ANY (ARRAY(SELECT id FROM node))
), ended AS (
    DELETE FROM rota.flow_end WHERE flow = ANY (%(flows)s::int8[])
), stop AS (
    DELETE FROM rota.flow_stop WHERE flow = ANY (%(flows)s::int8[])
)
DELETE FROM rota.flow WHERE id = ANY (%(flows)s::int8[])
