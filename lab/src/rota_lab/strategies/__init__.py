"""Designs of queues: one file each. `rota_lab.strategy` finds them by listing this folder."""
