-- The suspects that a session began last, a JSON array of ids; see rota/model/suspects.py.
ALTER TABLE rota_session ADD COLUMN lot TEXT;
