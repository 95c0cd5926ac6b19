# SPDX-License-Identifier: Apache-2.0
"""Fixtures that call the command line within this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import small_networks
from needs import require_module

from ferrule._frozen import frozen
from ferrule.cli import main
from ferrule.formats import to_tflite


@frozen
class Outcome:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


Ferrule = Callable[..., Outcome]


@pytest.fixture
def ferrule(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ferrule:
    """A function that calls `ferrule` with arguments."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: object) -> Outcome:
        capfd.readouterr()
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        code = caught.value.code
        assert isinstance(code, int)
        return Outcome(code=code, out=out, err=err)

    return call


@pytest.fixture(scope="session")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model file: `x` int8 [1, 6] to `y` int8 [1, 4]."""
    path = tmp_path_factory.mktemp("models") / "dense.tflite"
    path.write_bytes(to_tflite(small_networks.dense()))
    return path


@pytest.fixture(scope="session")
def two_by_two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model file with two inputs, `left` and `right`, and two outputs, `sum` and `largest`."""
    path = tmp_path_factory.mktemp("models") / "two_by_two.tflite"
    path.write_bytes(to_tflite(small_networks.two_by_two()))
    return path


@pytest.fixture(scope="session")
def zig() -> None:
    """Skip the test without the default toolchain and engine."""
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
