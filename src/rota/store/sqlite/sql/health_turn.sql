-- A turn at writing that writes nothing.
SELECT 1;
