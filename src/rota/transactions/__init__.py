"""Transactions that jobs join: the caller's, and Rota's own."""
