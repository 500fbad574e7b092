-- Jobs of a session that have a request to cancel. Locks nothing. Walks: rota_job_running.
SELECT id FROM rota_job WHERE session = :session AND cancel_requested;
