"""Slack: where people read what they have to know."""
