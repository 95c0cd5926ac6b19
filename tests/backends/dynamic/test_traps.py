# SPDX-License-Identifier: Apache-2.0
"""Failures of Arm NN's dynamic backends that no other test in this folder covers."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from needs import require_cxx

from ferrule import resources
from ferrule.backends.context import CreationOptions
from ferrule.backends.dynamic import Reason, load_dynamic_backends
from ferrule.backends.registry import BackendRegistry
from ferrule.runtime import Runtime

pytestmark = pytest.mark.cc
THROWING = """
#include <stdexcept>
#include "ferrule/backend.h"
const char *GetBackendId(void) { WHERE_ID return "Throwing"; }
void GetVersion(uint32_t *major, uint32_t *minor) { WHERE_VERSION *major = 1; *minor = 0; }
const struct ferrule_backend *BackendFactory(void) { WHERE_FACTORY return nullptr; }
"""


@pytest.mark.parametrize(
    ("place", "step"), [("ID", "GetBackendId"), ("VERSION", "GetVersion"), ("FACTORY", "BackendFactory")]
)
def test_an_exception_of_cpp_in_an_entry_point_costs_a_row(tmp_path: Path, place: str, step: str) -> None:
    """In Arm NN, only Arm NN's own exceptions are caught; others propagate out of Runtime::Create."""
    compiler = require_cxx()
    source = tmp_path / "throwing.cpp"
    source.write_text(THROWING)
    throw = 'throw std::runtime_error("broken");'
    macros = [f"-DWHERE_{name}={throw if name == place else ''}" for name in ("ID", "VERSION", "FACTORY")]
    include = f"-I{resources.root() / 'include'}"
    command = [*compiler, "-fPIC", "-shared", *macros, include, str(source), "-o", str(tmp_path / "A_B_backend.so")]
    subprocess.run(command, check=True)
    with Runtime(CreationOptions(dynamic_backends_path=tmp_path)) as runtime:
        (row,) = runtime.dynamic_report
        assert (row.reason, step in row.message, "SIGABRT" in row.message) == (Reason.CRASHED, True, True), row
        assert "CpuRef" in runtime.registry


def test_what_is_taken_is_logged_too(
    tmp_path: Path, compile_backend: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    """Arm NN logs neither the backends that it loads nor the names that it skips."""
    path = compile_backend(tmp_path)
    (tmp_path / "Arm_Gpu_Acc_backend.so").write_bytes(b"")
    with caplog.at_level(logging.DEBUG):
        load_dynamic_backends(BackendRegistry(), tmp_path)
    assert f'Dynamic backend "Valid" registered from "{path}"' in caplog.messages
    assert any("Arm_Gpu_Acc_backend.so" in message for message in caplog.messages)
    levels = {record.levelno for record in caplog.records if record.name.startswith("ferrule")}
    assert levels == {logging.INFO, logging.DEBUG}


def test_a_closed_runtime_leaves_no_id_and_no_file_behind(tmp_path: Path, compile_backend: Callable[..., Path]) -> None:
    """In Arm NN a null factory leaves its id registered, and each later runtime fails over it."""
    compile_backend(tmp_path, "FACTORY_RESULT=NULL")
    for _ in range(2):
        with Runtime(CreationOptions(dynamic_backends_path=tmp_path), BackendRegistry()) as runtime:
            (row,) = runtime.dynamic_report
            assert row.reason is Reason.NULL_FACTORY
            assert runtime.registry.ids() == ()
    good = compile_backend(tmp_path)
    with Runtime(CreationOptions(dynamic_backends_path=tmp_path), BackendRegistry()) as runtime:
        assert runtime.registry.ids() == ("Valid",)
    assert str(good.resolve()) not in Path("/proc/self/maps").read_text(encoding="utf-8")
