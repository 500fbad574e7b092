"""`rota metrics`: what Prometheus is told of a database, from one place for all its workers.

Every worker that told the same numbers would multiply them. What a worker alone knows,
`rota.prometheus` measures there.

seen      one look at the database a second, shared by all who ask
families  what was seen, as metrics; pure
page      the page that Prometheus reads
"""
