# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: `--order` changes the order of tests, to find tests that depend on one another."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--order`."""
    parser.addoption(
        "--order",
        metavar="ORDER",
        help="order of the tests: `reverse`, `random` or `random:SEED`; the header names the seed that was drawn",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Check the option, and draw the seed once, so that all pytest-xdist workers use the same order."""
    order = config.option.order = getattr(config, "workerinput", {}).get("order", config.option.order)
    if order is None or order == "reverse":
        return
    kind, separator, seed = order.partition(":")
    if kind != "random" or (separator and not seed.isdecimal()):
        raise pytest.UsageError(f"--order {order} is not known: choose reverse, random or random:SEED")
    if not separator:
        config.option.order = f"random:{random.SystemRandom().randrange(1 << 32)}"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Pass the seed to a worker, which parses the command line again."""
    node.workerinput["order"] = node.config.option.order


def pytest_report_header(config: pytest.Config) -> str | None:
    """Return the option that reproduces this order."""
    return f"order: --order={config.option.order}" if config.option.order else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Reverse all tests, or shuffle the files and the tests within each, so that a file's fixtures are built once."""
    order = config.option.order
    if order == "reverse":
        items.reverse()
    elif order:
        dice = random.Random(int(order.partition(":")[2]))
        files: dict[str, list[pytest.Item]] = {}
        for item in items:
            files.setdefault(item.location[0], []).append(item)
        shuffled = list(files.values())
        dice.shuffle(shuffled)
        for tests in shuffled:
            dice.shuffle(tests)
        items[:] = [item for tests in shuffled for item in tests]
