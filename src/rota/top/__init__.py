"""`rota top`: a live view of queues, workers, and who holds old rows back.

snapshot   one look at the database
history    the looks of the last minute: rates
queues     the queues as they are shown: figures, order, filter
workers    the workers as they are shown
columns    what fits into how wide a terminal
horizon    the oldest transaction in one line
figures    numbers and durations in few characters
looker     the thread that looks
screen     the terminal, by textual (`rota[top]`)
asking     its questions and its help

Everything but `looker`, `screen` and `asking` is pure; `--once` and `--json` need no textual.
"""
