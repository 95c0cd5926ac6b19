# SPDX-License-Identifier: Apache-2.0
"""Pytest fixtures, registered as an entry point; no other module of Ferrule is imported before a test uses one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from ferrule.testing import Adapter, CmsisFakes, Fakes, ZephyrFakes


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


@pytest.fixture(scope="session")
def _ferrule_library() -> _Library:
    return _Library()


@pytest.fixture
def ferrule_adapter(_ferrule_library: _Library) -> Iterator[AdapterBuilder]:
    """Return `build_adapter`; a misuse of a fake not yet raised by a call fails the test at its end."""
    from ferrule.testing import build_adapter

    used: list[Adapter[Any]] = []

    def build(platform: str, **options: object) -> Adapter[Any]:
        used.append(_ferrule_library.get(build_adapter, platform, **options))
        return used[-1]

    yield build
    for adapter in used:
        adapter.fakes.check()


@pytest.fixture
def ferrule_driver(_ferrule_library: _Library) -> Iterator[DriverBuilder]:
    """Return `build_driver`; a misuse of a fake not yet raised by a call fails the test at its end."""
    from ferrule.testing import build_driver

    used: list[Adapter[Fakes]] = []

    def build(**options: object) -> Adapter[Fakes]:
        used.append(_ferrule_library.get(build_driver, **options))
        return used[-1]

    yield build
    for adapter in used:
        adapter.fakes.check()


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
