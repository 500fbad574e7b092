"""Cron entries: when they are due, and the jobs they make. Pure functions on frozen values."""

from rota.cron.times import due_times

__all__ = ["due_times"]
