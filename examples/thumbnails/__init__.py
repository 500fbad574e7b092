"""Thumbnails of pictures, made in child processes: they use all cores, and a picture can harm its own job alone."""
