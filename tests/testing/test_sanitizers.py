# SPDX-License-Identifier: Apache-2.0
"""Mistakes in C that only sanitizers detect."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from needs import require_cc, require_module, require_sanitizers

from ferrule.errors import FerruleError, MissingToolError
from ferrule.testing import Adapter, Fakes, build_adapter, build_driver
from ferrule.testing.sanitizers import SanitizerError, run_sanitized

pytestmark = pytest.mark.cc
FOLDER = Path(__file__).parent / "c"


@pytest.fixture(autouse=True)
def _tools() -> None:
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()


def build() -> Adapter[Fakes]:
    return build_driver(sources=[FOLDER / "scaler.c"], headers=["scaler.h"], include_dirs=[FOLDER])


def reads_past_the_end() -> None:
    build().lib.scaler_read_past_end(4)


def overflows() -> None:
    build().lib.scaler_overflow(2**31 - 1)


def does_nothing_wrong() -> None:
    print(build().lib.scaler_read_past_end(3), build().lib.scaler_overflow(1))  # noqa: T201


def locks_and_unlocks_in_two_threads() -> None:
    zephyr = build_adapter("zephyr")
    device = zephyr.ffi.new("struct ferrule_device *")
    driver = zephyr.driver(check=lambda _: 0)
    assert zephyr.lib.ferrule_device_init(device) == 0
    assert zephyr.lib.ferrule_device_bind(device, zephyr.fakes.device("npu0"), driver, zephyr.ffi.NULL) == 0
    assert zephyr.lib.ferrule_device_activate(device) == 0

    def work() -> None:
        for _ in range(10):
            assert zephyr.lib.ferrule_device_open(device) == 0
            assert zephyr.lib.ferrule_device_close(device) == 0

    zephyr.fakes.run(work, work)


def test_reads_past_the_end_are_found() -> None:
    require_sanitizers("address")
    with pytest.raises(SanitizerError, match="global-buffer-overflow"):
        run_sanitized(reads_past_the_end)


def test_undefined_behaviour_is_found() -> None:
    with pytest.raises(SanitizerError, match="signed integer overflow"):
        run_sanitized(overflows, sanitizers=["undefined"])


def test_what_is_right_passes() -> None:
    require_sanitizers("address")
    assert run_sanitized(does_nothing_wrong) == "4 2\n"
    assert "FERRULE_TESTING_SANITIZE" not in os.environ


@pytest.mark.parametrize("sanitizers", [("address", "undefined"), pytest.param(("thread",), marks=pytest.mark.nightly)])
def test_adapters_pass(sanitizers: tuple[str, ...]) -> None:
    require_sanitizers(*sanitizers)
    run_sanitized(locks_and_unlocks_in_two_threads, sanitizers=sanitizers)


def test_pytest_runs_with_sanitizers(tmp_path: Path) -> None:
    require_sanitizers("address")
    text = f"""
import os
from ferrule.testing import build_driver

def build():
    folder = {str(FOLDER)!r}
    return build_driver(sources=[folder + "/scaler.c"], headers=["scaler.h"], include_dirs=[folder])

def test_right():
    assert build().build.sanitizers == ("address", "undefined")
    assert build().lib.scaler_read_past_end(0) == 1

def test_wrong():
    assert build().lib.scaler_read_past_end(4) != 7
"""
    (tmp_path / "test_it.py").write_text(text)
    assert "1 passed" in run_sanitized(f"{tmp_path / 'test_it.py'}::test_right")
    with pytest.raises(SanitizerError, match="global-buffer-overflow"):
        run_sanitized(tmp_path / "test_it.py")


@pytest.mark.parametrize("sanitizer", ["address", "thread"])
def test_a_build_that_would_end_this_process_is_refused(sanitizer: str) -> None:
    with pytest.raises(FerruleError, match="must be loaded before Python"):
        build_adapter("bare_metal", sanitize=[sanitizer])


@pytest.mark.parametrize(("sanitizer", "library"), [("address", "libasan.so"), ("thread", "libtsan.so")])
def test_what_zig_lacks_is_named(sanitizer: str, library: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(MissingToolError, match=f"ziglang cc .*has no {library}") as caught:
        run_sanitized(does_nothing_wrong, sanitizers=[sanitizer])
    assert caught.value.hint == "set CC to gcc"


def test_sanitizers_that_do_not_exist() -> None:
    with pytest.raises(FerruleError, match="no sanitizer memory"):
        run_sanitized(does_nothing_wrong, sanitizers=["memory"])
    with pytest.raises(FerruleError, match="none was named"):
        run_sanitized(does_nothing_wrong, sanitizers=[])


def test_what_does_not_end_is_told(tmp_path: Path) -> None:
    require_sanitizers("address")
    (tmp_path / "test_it.py").write_text("import time\ndef test_it():\n    time.sleep(60)\n")
    with pytest.raises(SanitizerError, match=r"did not end within 0\.5 s"):
        run_sanitized(tmp_path / "test_it.py", timeout_s=0.5)
