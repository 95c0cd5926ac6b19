# SPDX-License-Identifier: Apache-2.0
"""Fixtures for pytest, found through its entry point; nothing else of Ferrule is imported before a test asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from ferrule.testing import Adapter, CmsisFakes, Fakes, ZephyrFakes


class DriverBuilder(Protocol):
    """What the fixture `ferrule_driver` is: `build_driver`, which builds once for the same arguments."""

    def __call__(self, **options: Any) -> Adapter[Fakes]:  # noqa: ANN401 those of build_driver
        """Return the driver with everything forgotten."""
        ...


class AdapterBuilder(Protocol):
    """What the fixture `ferrule_adapter` is: `build_adapter`, which builds once for the same arguments."""

    def __call__(self, platform: str, **options: Any) -> Adapter[Any]:  # noqa: ANN401 those of build_adapter
        """Return the adapter with everything forgotten."""
        ...


class _Library:
    """What was built in this session."""

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
    """Return `build_adapter`; misuse of a fake that no call has raised fails the test at its end."""
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
    """Return `build_driver`; misuse of a fake that no call has raised fails the test at its end."""
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
    """Ferrule's adapter for Zephyr."""
    return ferrule_adapter("zephyr")


@pytest.fixture
def cmsis_adapter(ferrule_adapter: AdapterBuilder) -> Adapter[CmsisFakes]:
    """Ferrule's adapter for CMSIS."""
    return ferrule_adapter("cmsis")


@pytest.fixture
def bare_metal_adapter(ferrule_adapter: AdapterBuilder) -> Adapter[Fakes]:
    """Ferrule's adapter for no operating system."""
    return ferrule_adapter("bare_metal")
