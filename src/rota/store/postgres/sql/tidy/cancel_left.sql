-- Requests to cancel jobs that are not running any more: settled otherwise, or waiting again.
SELECT request.job FROM rota.cancel_request AS request
WHERE NOT EXISTS (SELECT FROM rota.lease WHERE request.job = ANY (lease.jobs))
