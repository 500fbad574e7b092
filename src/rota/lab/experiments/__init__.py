"""Questions: one file each. `rota.lab.experiment` finds them by listing this folder."""
