"""What users import: the app, its tasks, and handles on what it has stored."""
