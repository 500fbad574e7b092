"""Measuring Rota: one file per question, figures as anyone can repeat them.

A benchmark works in a database of its own that it makes and removes, runs its workers as real
processes, and reports what it measured together with the machine, the versions and the settings.
Machines are noisy: compare within one run, not across runs.
"""
