-- The next flows that are being stopped, to be looked after now.
SELECT flow FROM rota_flow_stop WHERE next <= (julianday('now') - 2440587.5) * 86400.0 ORDER BY next LIMIT 10;
