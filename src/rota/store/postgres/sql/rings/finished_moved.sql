-- Remember up to which block the kept jobs of a segment have been moved.
SELECT setval('rota.finished_moved', %(segment)s::int8 * 4294967296 + %(block)s::int8)
