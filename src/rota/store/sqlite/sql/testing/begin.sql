-- Begin the transaction that the driver would begin with the first change: a savepoint outside of
-- it would commit.
BEGIN;
