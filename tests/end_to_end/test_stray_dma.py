# SPDX-License-Identifier: Apache-2.0
"""A driver with a mistake: the accelerator's DMA leaves its buffers, and the run names the register that caused it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from needs import require_module
from small_networks import int8_input

import ferrule
from ferrule.backends import BackendId, Device
from ferrule.backends.woofles import firmware as woofles
from ferrule.emulation import EngineError

pytestmark = [pytest.mark.cc, pytest.mark.emu]

X = np.arange(-8, 8, dtype=np.int8).reshape(1, 16)
RIGHT = "entry->output = ferrule_bus_address(work->output);"
STRAY = {
    "a write to the stack's memory": (
        "entry->output = 0x20000000u;",
        r"write of 16 B at 0x20000000, asked for by a write of 0x1 to QUEUE_HEAD by 0x",
    ),
    "a write to the weights' memory": (
        "entry->output = 0x100u;",
        r"write of 16 B at 0x00000100, asked for by a write of 0x1 to QUEUE_HEAD by 0x",
    ),
    "a read past the end": (
        f"{RIGHT}\n    entry->input = 0x20003000u;",
        r"read of 16 B at 0x20003000, asked for by a write of 0x1 to QUEUE_HEAD by 0x",
    ),
}


def network() -> ferrule.Network:
    result = ferrule.Network("sum")
    result.add_input(int8_input("x", 1, 16))
    result.set_outputs([result.add_add_layer("x", "x", quantization=ferrule.Quantization.of(1.0), name="both")])
    return result


def run(use_interrupt: int) -> ferrule.RunReport:
    npu = Device(name="npu0", backend=BackendId("Woofles"), binding={"use_interrupt": use_interrupt})
    firmware = ferrule.compile(network(), board="mps2-an386", backends=["Woofles", "CpuAcc"], devices=[npu])
    return firmware.run([X])


@pytest.mark.parametrize(("mistake", "use_interrupt"), tuple(zip(STRAY, (0, 1, 0), strict=True)))
def test_dma_outside_of_the_buffers(
    mistake: str, use_interrupt: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    wrong, expected = STRAY[mistake]
    folder = tmp_path / "woofles"
    shutil.copytree(woofles.FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__", "tests"))
    driver = folder / "src" / "woofles.c"
    text = driver.read_text(encoding="utf-8")
    assert text.count(RIGHT) == 1
    driver.write_text(text.replace(RIGHT, wrong), encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(woofles, "FOLDER", folder)
        with pytest.raises(EngineError, match="device npu0: DMA outside of its buffers: ") as caught:
            run(use_interrupt)
    assert re.search(expected, str(caught.value)), caught.value
    assert "workspace" in (caught.value.hint or "")
    assert run(use_interrupt).verdict is ferrule.Verdict.EXACT
