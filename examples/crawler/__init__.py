"""A crawler whose pages come round: soon if they have changed, later if they have not."""
