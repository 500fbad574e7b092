"""A small shop, with jobs."""
