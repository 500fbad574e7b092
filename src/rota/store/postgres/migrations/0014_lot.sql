-- Suspects run apart from other jobs, in lots that are written down when they begin.

-- The suspects that a session began last; see rota/model/suspects.py.
CREATE TABLE rota.lot (
    session bigint PRIMARY KEY REFERENCES rota.session ON DELETE CASCADE,
    jobs    bigint[] NOT NULL
);
