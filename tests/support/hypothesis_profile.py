# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: the settings of Hypothesis for all tests; a test states only how many examples it wants."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# how long an example takes, or its generation, says more of the machine's load than of the test
_COMMON = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
settings.register_profile("fixed", _COMMON, derandomize=True, database=None)
settings.register_profile("random", _COMMON, derandomize=False, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--random-seeds`."""
    parser.addoption(
        "--random-seeds",
        action="store_true",
        help="let Hypothesis draw other examples in each run; without it, they are the same in every run",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Load the profile before a test module reads it; `--hypothesis-profile` is loaded later, and replaces it."""
    settings.load_profile("random" if config.option.random_seeds else "fixed")
