-- Keep a flow in this round for the rest of the transaction: nobody retries it. Gives it, unless it
-- is in another one.
SELECT id FROM rota.flow WHERE id = %(flow)s::int8 AND round = %(round)s::int4 FOR SHARE
