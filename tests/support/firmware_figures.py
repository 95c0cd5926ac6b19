# SPDX-License-Identifier: Apache-2.0
"""The exact figures of a firmware: instructions of an inference, flash and RAM."""

from __future__ import annotations

import re
from pathlib import Path

import ferrule
from ferrule._frozen import frozen

MODELS = {
    "ic": "pretrainedResnet_quant",
    "kws": "kws_ref_model",
    "vww": "vww_96_int8",
    "ad": "ad01_int8",
}
"""The names of the MLPerf Tiny models' files, without .tflite."""
_LINK = re.compile(r"(.*\.)?(link(\.\d+)?|ferrule_fault_stack)")
"""The symbols of the test link's buffers and of the stack of the fault handler."""


@frozen
class Layer:
    """A layer with its instructions."""

    name: str
    type: str
    kernel: str
    instructions: int
    bound: int | None = None
    """What the best kernels known take at least."""


@frozen
class Figures:
    """The figures of one model's firmware; sizes in bytes."""

    exact: bool
    """Whether the outputs equal those of the numpy reference."""
    instructions: int
    flash: int
    ram: int
    """Without the stacks and the test link's buffers."""
    activations: int
    workspace: int
    layers: tuple[Layer, ...]


def build(folder: Path, model: str, board: str, toolchain: str, goal: str) -> ferrule.Firmware:
    """Return the firmware of a model of the folder, at the toolchain's default optimization level."""
    return ferrule.compile(folder / f"{MODELS[model]}.tflite", board=board, toolchain=toolchain, goal=goal)


def measure(firmware: ferrule.Firmware) -> Figures:
    """Run the firmware on the default pattern and return its figures."""
    report = firmware.run(engine="qemu" if firmware.board.cpu.type == "cortex-m55" else "unicorn")
    flash, ram = report.memory.flash, report.memory.ram
    assert flash is not None  # the firmware's linker script is Ferrule's
    assert ram.total is not None
    link = sum(symbol.size_bytes for symbol in firmware.image.symbols if _LINK.fullmatch(symbol.name))
    return Figures(
        exact=report.verdict == "exact",
        instructions=report.count.per_inference,
        flash=flash.total,
        ram=ram.total - ram.stack_reserved - link,
        activations=report.memory.arena.activation_bytes,
        workspace=ram.workspace,
        layers=tuple(
            Layer(name=each.name, type=each.type, kernel=each.kernel, instructions=each.count, bound=each.bound)
            for each in report.layers
        ),
    )
