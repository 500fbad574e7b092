-- Note that what could be cancelled of a flow was: what runs has a request.
UPDATE rota.flow_stop SET next = clock_timestamp() + interval '5 seconds' WHERE flow = %(flow)s::int8
