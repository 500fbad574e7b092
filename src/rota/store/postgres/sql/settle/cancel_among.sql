-- Which of these jobs have a request to cancel.
SELECT job FROM rota.cancel_request WHERE job = ANY (%(jobs)s::int8[]) ORDER BY job
