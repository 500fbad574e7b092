"""Rooms for frameworks: each is an extra, and nothing else of Rota imports it."""
