"""Searching, fetching and reading pages of strangers."""
