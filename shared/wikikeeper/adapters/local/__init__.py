"""One machine: SQLite, a folder, threads."""
