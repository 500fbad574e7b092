-- Drop requests to cancel jobs that have been settled.
DELETE FROM rota.cancel_request WHERE job = ANY (%(jobs)s::int8[])
