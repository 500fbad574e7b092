"""Thumbnails made in child processes, which use all cores; a picture can harm only its own job."""
