# SPDX-License-Identifier: Apache-2.0
"""The fixtures of the pytest plugin, tested in an inner pytest."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

import pytest
from children import ran
from needs import require_cc, require_module

from ferrule.cache import cache_folder

pytest_plugins = ["pytester"]
FOLDER = Path(__file__).parent / "c"
PLUGIN = "ferrule.testing.pytest_plugin"


@pytest.fixture(autouse=True)
def _tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRULE_CACHE", str(cache_folder()))
    require_module("cffi", "pip install 'ferrule[testing]'")
    require_cc()


def loaded(pytester: pytest.Pytester, text: str) -> pytest.RunResult:
    """Run a test module in a separate process, which uses this process's compiled fakes."""
    pytester.makepyfile(text)
    registered = any(each.name == "ferrule" for each in importlib.metadata.entry_points(group="pytest11"))
    return pytester.runpytest_subprocess("-q", *([] if registered else ["-p", PLUGIN]))


@pytest.mark.cc
def test_fixtures_of_platforms(pytester: pytest.Pytester) -> None:
    result = loaded(
        pytester,
        """
        def test_zephyr(zephyr_adapter):
            zephyr_adapter.fakes.device("npu0")
            device = zephyr_adapter.ffi.new("struct ferrule_device *")
            assert zephyr_adapter.lib.ferrule_device_init(device) == 0
            assert zephyr_adapter.fakes.calls

        def test_each_test_starts_anew(zephyr_adapter, cmsis_adapter, bare_metal_adapter):
            assert zephyr_adapter.fakes.calls == []
            assert cmsis_adapter.fakes.now_us == 0
            assert bare_metal_adapter.fakes.trace == ""
        """,
    )
    result.assert_outcomes(passed=2)


@pytest.mark.cc
def test_a_driver_is_built_once(pytester: pytest.Pytester) -> None:
    result = loaded(
        pytester,
        f"""
        import numpy as np
        OPTIONS = dict(sources=[{str(FOLDER / "scaler.c")!r}], headers=["scaler.h"], include_dirs=[{str(FOLDER)!r}])
        built = []

        def test_first(ferrule_driver):
            built.append(ferrule_driver(**OPTIONS))
            built[0].attach(0x1000, np.zeros(4, np.uint32))

        def test_second(ferrule_driver):
            assert ferrule_driver(**OPTIONS) is built[0]
            built[0].attach(0x1000, np.zeros(4, np.uint32))
        """,
    )
    result.assert_outcomes(passed=2)


@pytest.mark.cc
def test_misuse_that_nobody_saw_fails_the_test(pytester: pytest.Pytester) -> None:
    result = loaded(
        pytester,
        f"""
        def test_it(ferrule_driver):
            driver = ferrule_driver(
                sources=[{str(FOLDER / "scaler.c")!r}], headers=["scaler.h"], include_dirs=[{str(FOLDER)!r}]
            )
            scaler = driver.ffi.new("struct scaler *", {{"base": 0x1000}})
            driver.lib.scaler_driver.activate(scaler)
        """,
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*register 0x00001000 is read, where no device is attached*"])


@pytest.mark.cc
def test_fixtures_check_it(pytester: pytest.Pytester) -> None:
    """A test that passes fails at its end; a test that failed, or that is marked, is not checked."""
    result = loaded(
        pytester,
        f"""
        import pytest

        def test_driver(ferrule_driver):
            driver = ferrule_driver(
                sources=[{str(FOLDER / "scaler.c")!r}], headers=["scaler.h"], include_dirs=[{str(FOLDER)!r}]
            )
            driver.lib.ferrule_port_critical_enter()

        def test_adapter(cmsis_adapter):
            cmsis_adapter.lib.osKernelLock()

        @pytest.fixture
        def locked(cmsis_adapter):
            cmsis_adapter.lib.osKernelLock()
            yield
            cmsis_adapter.lib.osKernelUnlock()

        def test_fixtures_that_give_back(locked):
            pass

        @pytest.mark.ferrule_unbalanced
        def test_marked(cmsis_adapter):
            cmsis_adapter.lib.osKernelLock()

        def test_failed(cmsis_adapter):
            cmsis_adapter.lib.osKernelLock()
            assert False, "its own reason"
        """,
    )
    result.assert_outcomes(passed=4, errors=2, failed=1)
    errors = [line for line in result.stdout.lines if line.startswith("E  ") and "BalanceError" in line]
    assert len(errors) == 2
    assert "interrupts are masked, by thread 1" in errors[0]
    assert "the kernel is locked, by thread 1" in errors[1]


def test_it_costs_pytest_nothing() -> None:
    """Loading the plugin imports nothing of Ferrule beside its errors, and neither numpy nor cffi."""
    text = f"""
import pytest, sys
before = set(sys.modules)
import {PLUGIN}
new = set(sys.modules) - before
print(sorted(name for name in new if name.split('.')[0] in ('ferrule', 'numpy', 'cffi', 'msgspec')))
"""
    done = ran([sys.executable, "-c", text], check=True, timeout=60)
    assert eval(done.stdout) == [  # noqa: S307 a list of strings
        *("ferrule", "ferrule._frozen", "ferrule._lazy", "ferrule._typing", "ferrule._version", "ferrule.errors"),
        *("ferrule.interface", "ferrule.testing", PLUGIN),
    ]
