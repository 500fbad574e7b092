-- Which of these jobs somebody wants cancelled.
SELECT job FROM rota.cancel_request WHERE job = ANY (%(jobs)s::int8[]) ORDER BY job
