-- The block of a segment of finished jobs from which on kept ones are still to be moved, and how
-- many blocks it has.
SELECT CASE WHEN last_value >> 32 = %(segment)s::int8 THEN last_value & 4294967295 ELSE 0 END,
       pg_relation_size(('rota.finished_' || %(segment)s::int2)::regclass)
           / current_setting('block_size')::int8
FROM rota.finished_moved
