# SPDX-License-Identifier: Apache-2.0
"""An arena that several models share: its size, and its lock on every platform."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import device_networks
import numpy as np
import pytest
from device_networks import HINTS, NPU0, NPU1
from needs import lacking
from small_networks import dense, two_by_two

from ferrule.backends.contribution import KERNELS
from ferrule.boards import load_board
from ferrule.cli.options import ARENAS
from ferrule.codegen import Program
from ferrule.errors import FerruleError
from ferrule.firmware import PLATFORMS, SEPARATE, SHARED, Job, ProjectRequest, emit, emit_program
from ferrule.network.samples import random_sample
from ferrule.testing import Adapter, build_adapter
from ferrule.testing.cdata import CData

JOB = Job(arena="shared")
OK, BUSY, TIMEOUT, INTERRUPT = 0, -8, -9, -10
ALL = sorted(PLATFORMS)


def pair(job: Job = JOB) -> Program:
    return emit_program([dense(), two_by_two()], job)


def generated(program: Program, platform: str) -> dict[str, bytes]:
    request = ProjectRequest(program=program, board=load_board("mps2-an386"), toolchain="zig", optimization="O2")
    found = PLATFORMS[platform].files(request)
    return {**found.generated, **found.starters}


def lock_of(found: dict[str, bytes]) -> bytes:
    (lock,) = (data for name, data in found.items() if Path(name).name == "arena_lock.c")
    return lock


def test_the_arena_is_as_large_as_the_largest() -> None:
    program = pair()
    sizes = [artifact.workspace_bytes for artifact in program.artifacts]
    assert program.workspace_bytes == max(sizes) < sum(sizes) == pair(Job()).workspace_bytes
    source = program.files["ferrule_dense_two_by_two_arena.c"]
    assert f"uint8_t ferrule_dense_two_by_two_arena_sram[{max(sizes)}];" in source
    model = program.files["ferrule_dense.c"]
    assert ".sram = ferrule_dense_two_by_two_arena_sram," in model
    assert "ferrule_dense_default_sram" not in model
    for artifact in program.artifacts:
        assert f"ferrule_{artifact.symbol}_run_shared(" in program.files[f"ferrule_{artifact.symbol}_link.c"]


def test_a_model_alone_has_its_own_arena() -> None:
    with pytest.raises(FerruleError, match="one model has no arena to share"):
        emit(dense(), JOB)
    with pytest.raises(FerruleError, match="there is no arena 'common' in a Job"):
        Job(arena="common")
    assert set(ARENAS) == {SEPARATE, SHARED}


def test_the_names_of_tvm_lock_the_arena() -> None:
    job = Job(arena="shared", hints=HINTS, devices=(NPU0, NPU1))
    program = emit_program([device_networks.crossing(), dense()], job)
    assert "return ferrule_crossing_run_shared(&from, &to, &on, NULL);" in program.files["tvmgen_crossing.h"]


@pytest.mark.parametrize("platform", ALL)
def test_the_lock_is_as_the_formatter_has_it(platform: str) -> None:
    formatter = shutil.which("clang-format", path=str(Path(sys.executable).parent))
    if formatter is None:
        lacking("clang-format", "pip install -e '.[dev]'")
        return
    lock = lock_of(generated(pair(), platform))
    argv = [formatter, f"--style=file:{Path(__file__).parents[2] / '.clang-format'}"]
    assert subprocess.run(argv, input=lock, capture_output=True, check=True).stdout.decode() == lock.decode()


def built(platform: str, folder: Path, *names: str, sources: Sequence[Path] = ()) -> Adapter[Any]:
    """Build the lock of `pair` for a platform, with some of its generated files, on that platform's fakes."""
    program = pair()
    for name, text in program.files.items():
        (folder / name).write_text(text)
    (folder / "arena_lock.c").write_bytes(lock_of(generated(program, platform)))
    adapter: Adapter[Any] = build_adapter(
        platform.replace("-", "_"),
        sources=[folder / "arena_lock.c", *(folder / f"{name}.c" for name in names), *sources],
        headers=["ferrule_dense_two_by_two_arena.h", *(f"{name}.h" for name in names)],
        include_dirs=[folder, *KERNELS.include_paths],
    )
    return adapter


@pytest.mark.cc
@pytest.mark.parametrize("platform", ["cmsis", pytest.param("zephyr", marks=pytest.mark.nightly)])
def test_one_thread_has_the_arena_at_a_time(platform: str, tmp_path: Path) -> None:
    adapter = built(platform, tmp_path)
    lock = adapter.lib.ferrule_dense_two_by_two_arena_lock
    unlock = adapter.lib.ferrule_dense_two_by_two_arena_unlock
    assert lock() == OK
    assert lock() == BUSY
    with adapter.fakes.as_thread(2):
        assert lock() == TIMEOUT
    unlock()
    with adapter.fakes.as_thread(2):
        assert lock() == OK
    assert lock() == TIMEOUT
    with adapter.fakes.as_thread(2):
        unlock()
    with adapter.fakes.interrupt():
        assert lock() == INTERRUPT
    assert lock() == OK
    unlock()


@pytest.mark.cc
def test_a_run_needs_the_arena(tmp_path: Path) -> None:
    """Without an operating system, a run that finds the arena in use does not wait."""
    names = ("ferrule_dense_two_by_two_arena", "ferrule_dense", "ferrule_dense_weights")
    kernels = [path for part in pair().contributions for path in part.source_paths]
    adapter = built("bare-metal", tmp_path, *names, sources=kernels)
    lib: CData = adapter.lib
    (x,) = random_sample(dense().inputs, 1)
    (expected,) = dense().run([x])

    def run() -> int:
        adapter.ffi.memmove(adapter.ffi.cast("void *", lib.ferrule_dense_default_inputs.x), x.tobytes(), x.nbytes)
        given = (lib.ferrule_dense_default_inputs, lib.ferrule_dense_default_outputs)
        return int(lib.ferrule_dense_run_shared(*map(adapter.ffi.addressof, given), adapter.ffi.NULL))

    assert run() == OK
    found = np.frombuffer(adapter.ffi.buffer(lib.ferrule_dense_default_outputs.y, expected.nbytes), expected.dtype)
    assert np.array_equal(found, expected.ravel())
    assert lib.ferrule_dense_two_by_two_arena_lock() == OK
    assert lib.ferrule_dense_two_by_two_arena_lock() == BUSY
    assert run() == BUSY
    lib.ferrule_dense_two_by_two_arena_unlock()
    assert run() == OK
