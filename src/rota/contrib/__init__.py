"""Integrations, one room for each framework; never imported by the core."""
