"""An app's database: Rota's own connections and transactions, and callers', which jobs join."""
