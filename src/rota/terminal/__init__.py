"""How commands speak to a person on a terminal, and to programs: tables, JSON, exit codes."""
