"""Questions: one file each. `rota_lab.experiment` finds them by listing this folder."""
