"""The command line: one module per command, imported only when its command is asked for.

main         all commands, and how errors are shown
lazy         a group that does not import its commands
options      options of many commands: --url, durations, names, ids
database     opening a database that must exist
find_app     from MODULE:APP to the app
command_app  an app that tells a refusing database from a wrong command line

`rota.terminal` has the exit codes and prints tables.
"""
