"""`rota demo`: the main job on real input, one job per file of a folder.

command   what the command line offers
files     which files there are
tasks     the app: one task, the SHA-256 of a file
crew      the workers: real processes that end with the demo, whatever happens to it
course    what happens, in its order: enqueue, watch, kill, check, clean up
takeover  killing a worker that has jobs in its hands, and watching others take them
report    what happened, for people and for programs
telling   progress: a bar on a terminal, lines elsewhere, nothing for programs
"""
