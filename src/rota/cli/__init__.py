"""The command line: one module per command, imported only when its command is asked for.

main      the commands there are, and what becomes of errors
lazy      a group that does not import its commands
exits     exit codes, and one red line instead of a traceback
advice    commands to run next, with the --url that this one was given
options   what commands have in common: --url, --json, ids
database  opening a database that must be there already
output    tables on a terminal, tabs in a pipe, JSON; text of others made harmless
tables    which columns fit into a terminal
"""
