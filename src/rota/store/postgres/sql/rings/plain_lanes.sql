-- How many plain lanes there are. Locks nothing. Walks lane_plain; only a turn of the cursors asks.
SELECT count(*) FROM rota.lane WHERE NOT of_key
