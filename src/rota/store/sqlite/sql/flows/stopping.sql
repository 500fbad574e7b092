-- Note that what could be cancelled of a flow was: what runs has a request.
UPDATE rota_flow_stop SET next = (julianday('now') - 2440587.5) * 86400.0 + 5.0 WHERE flow = :flow;
