"""`rota bench`: measure this machine and this database.

command     the group
rates       jobs per second: drain, enqueue, scale, counts, limits, flow
times       how soon: latency, trickle, delayed, retries, idle, dashboard, steps
long        over time: hold, soak
finite      numbers as options
files       the files that a report is written to
measuring   what all benchmarks share: where they measure, progress, showing the report
"""
