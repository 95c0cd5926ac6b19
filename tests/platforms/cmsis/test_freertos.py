# SPDX-License-Identifier: Apache-2.0
"""The CMSIS adapter on FreeRTOS, through its CMSIS-RTOS2 layer, on an emulated board.

The tests run where CMSIS_PATH and CMSIS_FREERTOS_PATH name checkouts of ARM-software/CMSIS_6 and
ARM-software/CMSIS-FreeRTOS.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cmsis_project
import freertos_project
import pytest
import small_networks
from needs import require_module

pytestmark = [pytest.mark.cc, pytest.mark.emu, pytest.mark.slow]
FOLDER = Path(__file__).parent


def build(folder: Path, options: Sequence[str] = ()) -> Path:
    """Build contention.c with a project's library."""
    project = cmsis_project.write(folder, small_networks.dense()).folder
    return freertos_project.build(project, FOLDER / "contention.c", options)


def test_two_threads_contend(tmp_path: Path) -> None:
    require_module("unicorn", "pip install 'ferrule[run]'")
    elf = build(tmp_path / "project")
    for name in ("qemu", "unicorn"):
        assert cmsis_project.contention(elf, name) == cmsis_project.IN_TURNS


def test_without_the_lock_they_meet(tmp_path: Path) -> None:
    told = cmsis_project.contention(build(tmp_path / "project", ["-DNO_LOCK"]))
    assert told["overlaps"] > told["runs"] / 2
