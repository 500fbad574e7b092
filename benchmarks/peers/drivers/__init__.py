"""One file a peer: how it is set up, enqueues and works.

driver    what each of them does
jobs      the jobs that a driver is to enqueue, and the clock that times them
serve     the program around a driver written in Python
serve.mjs the same for one written in JavaScript
"""
