"""Fixtures of these tests."""

from tests.bundled.fixtures import bundled_server

__all__ = ["bundled_server"]
