"""The field: Rota and other job queues, measured side by side on this machine; `make peers`.

field         which peers there are, with the settings that their documentation gives as best
places        a fresh database for each measurement, and what is looked up in it
servers       the servers that the peers need, and what is missing on this machine
processes     a driver's processes
processor     processor time of processes
records       what handlers write down: which job ran, and when
once          whether each job ran once
measurements  what is measured
enqueueing, draining, trickling   how
turns         who is measured when
samples       what was measured, and medians of it
report        the report, with its charts
pages         its section in the docs
drivers/      one file a peer, all with the same few methods

A driver runs in a process of its own, in its peer's environment. So `drivers/` and `records` import
nothing but the standard library and that peer.
"""
