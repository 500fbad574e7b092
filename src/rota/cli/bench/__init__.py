"""`rota bench`: measure this machine and this database.

command     the group
rates       jobs per second: drain, enqueue, scale, counts, limits
times       how soon: latency, delayed, retries, idle
long        what happens over time: hold, soak
finite      numbers as options
files       where a report can be written
signals     what stops a benchmark before its end
measuring   what all of them have in common: where, progress, and how the report is shown
"""
