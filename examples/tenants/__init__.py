"""Tenants that share workers: each has the room that its plan gives, and its turn."""
