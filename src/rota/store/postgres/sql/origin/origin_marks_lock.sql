-- Keep others from writing totals down until this transaction ends.
LOCK TABLE rota.tally_mark IN SHARE ROW EXCLUSIVE MODE
