"""The contract suites are no test modules by name; their asserts should tell as much."""

import pytest

pytest.register_assert_rewrite("tests.adapters.contracts")
