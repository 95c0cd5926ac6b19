# SPDX-License-Identifier: Apache-2.0
"""Firmware shared by several tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from needs import require_module, require_program

import ferrule


@pytest.fixture(scope="session")
def zig() -> str:
    """The default toolchain; the test is skipped without it or the default engine."""
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    return "zig"


@pytest.fixture(scope="session", params=["zig", "arm-none-eabi-gcc"])
def any_toolchain(request: pytest.FixtureRequest) -> str:
    """The toolchains in turn; those that are missing are skipped."""
    require_module("unicorn", "pip install 'ferrule[run]'")
    name = str(request.param)
    if name == "zig":
        require_module("ziglang", "pip install 'ferrule[run]'")
    else:
        require_program(name, "apt-get install gcc-arm-none-eabi")
    return name


@pytest.fixture(scope="session")
def built(zig: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[ferrule.Network], ferrule.Firmware]:
    """A function that builds a network for the default board, once per name and shape of the first input."""
    done: dict[tuple[object, ...], ferrule.Firmware] = {}

    def build(network: ferrule.Network) -> ferrule.Firmware:
        key = (network.name, network.inputs[0].shape)
        if key not in done:
            done[key] = ferrule.compile(network, toolchain=zig, out=tmp_path_factory.mktemp("firmware") / "project")
        return done[key]

    return build


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which temporary folders are created."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder
