-- Write down what someone did; gives the id of the row.
INSERT INTO rota_audit (at, who, action, what, changed, job)
VALUES ((julianday('now') - 2440587.5) * 86400.0, :who, :action, :what, :changed, :job)
RETURNING id;
