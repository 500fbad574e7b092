-- How many rows this connection has changed since it was opened, also in what was rolled back.
SELECT total_changes();
