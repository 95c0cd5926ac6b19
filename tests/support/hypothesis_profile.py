# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin with the Hypothesis settings of all tests; a test states only its number of examples."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# The time to draw or run an example depends more on the machine's load than on the test.
_COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
settings.register_profile("fixed", _COMMON, derandomize=True, database=None)
settings.register_profile("random", _COMMON, derandomize=False, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--random-seeds`."""
    parser.addoption(
        "--random-seeds",
        action="store_true",
        help="let Hypothesis draw different examples in each run; without this option, every run has the same",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Load the profile before any test module reads it; `--hypothesis-profile` is loaded later and replaces it."""
    settings.load_profile("random" if config.option.random_seeds else "fixed")
