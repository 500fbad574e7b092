-- Lock a flow against whoever decides, for the rest of the transaction.
SELECT id FROM rota.flow WHERE id = %(flow)s::int8 FOR UPDATE
