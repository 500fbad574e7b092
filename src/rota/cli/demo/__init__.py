"""`rota demo`: Rota on real input, one job per file of a folder.

command   the command line
files     the files of the folder
tasks     the app: one task, the SHA-256 of a file
crew      the workers: real processes that end with the demo in any case
course    the steps: enqueue, watch, kill, check, clean up
takeover  killing a worker that holds jobs, and watching others take the jobs over
report    the result, for people and for programs
telling   progress: a bar on a terminal, lines elsewhere, nothing for programs
"""
