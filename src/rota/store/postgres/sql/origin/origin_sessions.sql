-- Every session there is: after a restore none of them can be alive.
SELECT id FROM rota.session ORDER BY id FOR UPDATE
