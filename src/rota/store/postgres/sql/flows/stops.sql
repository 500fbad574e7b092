-- The next flows that are being stopped, to be looked after now.
SELECT flow FROM rota.flow_stop WHERE next <= clock_timestamp() ORDER BY next LIMIT 10
