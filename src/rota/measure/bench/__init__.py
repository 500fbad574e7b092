"""Measuring Rota: one file per question, figures as anyone can repeat them.

A benchmark works in a database of its own that it makes and removes, runs its workers as real
processes, and reports what it measured together with the machine, the versions and the settings.
Machines are noisy: compare within one run, not across runs.

drain, enqueue, latency, hold, delayed, retries, soak, scale, idle, counts, limits: one question each
figures   numbers of measurements
crew      workers in processes of their own, and what they have seen; producer the same for producers
steady    a steady load with a sample every second: what hold and soak have in common
holder    the long transaction; observer what the database knows about itself
scratch   where databases are made; tasks what the workers run

The form of an answer, its tables and its page are in `rota.measure.reports`; `rota.measure.processes` is how a parent
asks its children.
"""
