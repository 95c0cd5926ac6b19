# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: `--order` changes the order of tests, to find tests that depend on one another.

The plugin also makes the collection of the tests cheaper. Without it, all pytest-xdist workers would import the same
module at the same time, and each would compile it; with it, every second worker imports the modules in the opposite
order, and finds half of them compiled.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

_PLACE = pytest.StashKey[int]()
"""The place of a file or a folder among those of its folder."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--order`."""
    parser.addoption(
        "--order",
        metavar="ORDER",
        help="order of the tests: `reverse`, `twice`, which comes back to each file for its second half, `random` or "
        "`random:SEED`; the header names the seed that was drawn",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Check the option, and draw the seed once, so that all pytest-xdist workers use the same order."""
    order = config.option.order = getattr(config, "workerinput", {}).get("order", config.option.order)
    if order in {None, "reverse", "twice"}:
        return
    kind, separator, seed = order.partition(":")
    if kind != "random" or (separator and not seed.isdecimal()):
        raise pytest.UsageError(f"--order {order} is not known: choose reverse, twice, random or random:SEED")
    if not separator:
        config.option.order = f"random:{random.SystemRandom().randrange(1 << 32)}"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Pass the seed to a worker, which parses the command line again."""
    node.workerinput["order"] = node.config.option.order


def pytest_report_header(config: pytest.Config) -> str | None:
    """Return the option that reproduces this order."""
    return f"order: --order={config.option.order}" if config.option.order else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage: what is made now, such as modules and tests, stays until the end of the run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Note the order of a folder's files, and reverse it in every second worker."""
    report = yield
    if isinstance(collector, pytest.Session | pytest.Directory) and report.passed:
        for place, node in enumerate(report.result):
            node.stash[_PLACE] = place
        worker = getattr(collector.config, "workerinput", {}).get("workerid", "gw0")
        if int(worker.removeprefix("gw")) % 2:
            report.result.reverse()
    return report


def _place(item: pytest.Item) -> list[int]:
    return [node.stash[_PLACE] for node in item.listchain() if _PLACE in node.stash]


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Put the tests in the order of their folders, which all workers must share, and at the end in the wanted order.

    A random order shuffles the files and the tests within each, so that a file's fixtures are built once.
    """
    items.sort(key=_place)
    yield
    order = config.option.order
    if order == "reverse":
        items.reverse()
    elif order:
        files: dict[str, list[pytest.Item]] = {}
        for item in items:
            files.setdefault(item.location[0], []).append(item)
        if order == "twice":  # as a worker of pytest-xdist that gets tests of another one
            halves = [(tests[: len(tests) // 2], tests[len(tests) // 2 :]) for tests in files.values()]
            items[:] = [item for number in (0, 1) for half in halves for item in half[number]]
            return
        dice = random.Random(int(order.partition(":")[2]))
        shuffled = list(files.values())
        dice.shuffle(shuffled)
        for tests in shuffled:
            dice.shuffle(tests)
        items[:] = [item for tests in shuffled for item in tests]
