"""The embedded store: jobs as rows of a SQLite file, for one machine."""
