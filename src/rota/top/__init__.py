"""`rota top`: a live view of queues, workers, and the oldest transaction.

snapshot   one look at the database
history    the looks of the last minute: rates
queues     the queues as they are shown: figures, order, filter
columns    the columns of queues and of workers
horizon    the oldest transaction in one line
figures    numbers and durations in few characters
looker     the thread that looks
screen     the terminal, by textual (`rota[top]`)
grid       a table on the screen
dialogs    questions and help

Only `looker`, `screen`, `grid` and `dialogs` are impure; `--once` and `--json` need no textual.
"""
