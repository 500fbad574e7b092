"""An app's database: connections and transactions of Rota's own, and the callers' transactions that jobs join."""
