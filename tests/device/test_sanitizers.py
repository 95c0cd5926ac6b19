# SPDX-License-Identifier: Apache-2.0
"""The device API's tests under sanitizers, which also detect a mutant's faults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from children import ran
from host_library import sanitizer_environment

FOLDER = Path(__file__).parent
MODULES = ("test_state_machine.py", "test_calls.py", "test_races.py")
MUTANT = """
import sys
sys.path.insert(0, sys.argv[1])
from fake_device import Bench, library
bench = Bench(library(("bytes > driver->memory_bytes - device_offset", "bytes > 4096")))
bench.bring("open")
data = bench.fake.ffi.new("uint8_t[]", 8)
bench.lib.ferrule_device_copy_to(bench.dev, 0, data, 100)
print("not noticed")
"""


def run(sanitizer: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return ran(
        [sys.executable, *arguments],
        env=sanitizer_environment(sanitizer),
        timeout=300,
    )


@pytest.mark.cc
@pytest.mark.nightly
@pytest.mark.parametrize("sanitizer", ["undefined", "address"])
def test_sanitizers_find_nothing(sanitizer: str) -> None:
    done = run(sanitizer, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(str(FOLDER / name) for name in MODULES))
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


@pytest.mark.cc
def test_the_address_sanitizer_watches() -> None:
    done = run("address", "-c", MUTANT, str(FOLDER.parent / "support"))
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr
    assert "not noticed" not in done.stdout
