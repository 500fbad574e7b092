"""A small service that takes orders, with jobs: docs/fastapi.md."""
