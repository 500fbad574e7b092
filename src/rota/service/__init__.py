"""A worker as a service of its machine: what it tells systemd, and those who ask by HTTP how it is."""
