"""How commands speak to people on a terminal, and to programs.

output    tables on a terminal, tabs in a pipe, JSON; escapes in others' text made harmless
tables    which columns fit into a terminal
exits     exit codes, and one red line instead of a traceback
advice    the next commands to run, with the --url of this command
bar       progress bars; progress: what they are told
stopping  stopping early in order: Ctrl-C, SIGTERM
"""
