-- Whether leases are held in one of the two tables. Reads its dead rows, too; the table is small.
SELECT EXISTS (SELECT FROM rota.lease WHERE slot = %(slot)s::int2)
