# SPDX-License-Identifier: Apache-2.0
"""Pytest fixtures, registered as an entry point; no other module of Ferrule is imported before a test uses one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from ferrule.testing import Adapter, CmsisFakes, Fakes, ZephyrFakes


UNBALANCED = "ferrule_unbalanced"
_failed = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark of tests without a balance check."""
    config.addinivalue_line(
        "markers", f"{UNBALANCED}: the C under test may keep devices open, power and locks at the test's end"
    )


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Note that a test has failed, so that no balance check hides the reason."""
    outcome: Any = yield
    if outcome.get_result().failed:
        item.stash[_failed] = True


class DriverBuilder(Protocol):
    """The fixture `ferrule_driver`: `build_driver`, with one build per session for equal arguments."""

    def __call__(self, **options: Any) -> Adapter[Fakes]:  # noqa: ANN401 those of build_driver
        """Return the driver after a reset."""
        ...


class AdapterBuilder(Protocol):
    """The fixture `ferrule_adapter`: `build_adapter`, with one build per session for equal arguments."""

    def __call__(self, platform: str, **options: Any) -> Adapter[Any]:  # noqa: ANN401 those of build_adapter
        """Return the adapter after a reset."""
        ...


class _Library:
    """The builds of this session."""

    def __init__(self) -> None:
        self._built: dict[str, Adapter[Any]] = {}

    def get(self, build: Callable[..., Adapter[Any]], *arguments: object, **options: object) -> Adapter[Any]:
        key = repr((build.__name__, arguments, sorted(options.items())))
        if key not in self._built:
            self._built[key] = build(*arguments, **options)
        self._built[key].reset()
        return self._built[key]


def _check(used: list[Adapter[Any]], test: pytest.Item) -> None:
    for adapter in used:
        adapter.fakes.check()
    if test.get_closest_marker(UNBALANCED) is None and _failed not in test.stash:
        for adapter in used:
            adapter.fakes.check_balance()


@pytest.fixture(scope="session")
def _ferrule_library() -> _Library:
    return _Library()


@pytest.fixture
def ferrule_adapter(_ferrule_library: _Library, request: pytest.FixtureRequest) -> Iterator[AdapterBuilder]:
    """Return `build_adapter`; at the test's end, a misuse that no call raised and everything still held fail it."""
    from ferrule.testing import build_adapter

    used: list[Adapter[Any]] = []

    def build(platform: str, **options: object) -> Adapter[Any]:
        used.append(_ferrule_library.get(build_adapter, platform, **options))
        return used[-1]

    yield build
    _check(used, request.node)


@pytest.fixture
def ferrule_driver(_ferrule_library: _Library, request: pytest.FixtureRequest) -> Iterator[DriverBuilder]:
    """Return `build_driver`; at the test's end, a misuse that no call raised and everything still held fail it."""
    from ferrule.testing import build_driver

    used: list[Adapter[Fakes]] = []

    def build(**options: object) -> Adapter[Fakes]:
        used.append(_ferrule_library.get(build_driver, **options))
        return used[-1]

    yield build
    _check(used, request.node)


@pytest.fixture
def zephyr_adapter(ferrule_adapter: AdapterBuilder) -> Adapter[ZephyrFakes]:
    """Return Ferrule's adapter for Zephyr."""
    return ferrule_adapter("zephyr")


@pytest.fixture
def cmsis_adapter(ferrule_adapter: AdapterBuilder) -> Adapter[CmsisFakes]:
    """Return Ferrule's adapter for CMSIS."""
    return ferrule_adapter("cmsis")


@pytest.fixture
def bare_metal_adapter(ferrule_adapter: AdapterBuilder) -> Adapter[Fakes]:
    """Return Ferrule's adapter for bare metal."""
    return ferrule_adapter("bare_metal")
