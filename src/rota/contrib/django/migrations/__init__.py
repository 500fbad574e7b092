"""Rota's tables, as Django's migrations make them."""
