"""A small service that takes orders, with jobs: docs/frameworks/fastapi.md."""
