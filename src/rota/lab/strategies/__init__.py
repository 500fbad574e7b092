"""Designs of queues: one file each. `rota.lab.strategy` finds them by listing this folder."""
