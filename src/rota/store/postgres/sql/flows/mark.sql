-- Note that everything has been decided that was there in this snapshot. Two workers that do so at
-- once write one mark.
WITH marked AS (
    INSERT INTO rota.flow_mark (seq, snapshot)
    SELECT seq + 1, %(snapshot)s::text::pg_snapshot FROM rota.flow_mark ORDER BY seq DESC LIMIT 1
    ON CONFLICT DO NOTHING
    RETURNING seq
)
DELETE FROM rota.flow_mark WHERE seq = (SELECT seq - 10 FROM marked)
