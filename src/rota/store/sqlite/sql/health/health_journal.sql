-- Who may read while somebody writes: 'wal' is what Rota needs. Changes nothing.
PRAGMA journal_mode;
