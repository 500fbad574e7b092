-- Whether a flow is to be stopped now. Locks nothing. Walks: rota_flow_stop_next, its leftmost
-- entry.
SELECT EXISTS (SELECT 1 FROM rota_flow_stop WHERE next <= (julianday('now') - 2440587.5) * 86400.0);
