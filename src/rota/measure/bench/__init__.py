"""Measuring Rota: one file per question, with figures that anyone can repeat.

A benchmark works in a database of its own that it makes and removes, runs its workers as real
processes, and reports what it measured together with the machine, the versions and the settings.
Machines are noisy: compare within one run, not across runs.

drain, enqueue, unique, latency, hold, delayed, retries, soak, scale, idle, counts, limits: one
question each
figures   from measurements to figures
crew      workers in processes of their own, and what they report; producer: the same for producers
steady    a steady load with a sample every second, for hold, soak and latency
waiting   enqueues beside an open producer, for hold
holder    the long transaction
observer  what the database knows about itself
witness   the machine's speed, and the blocks that a job touches
lanes     queues and priorities to spread jobs over
scratch   where databases are made
tasks     what the workers run

Reports, their tables and their page are in `rota.measure.reports`; `rota.measure.processes` lets a
parent ask its children.
"""
