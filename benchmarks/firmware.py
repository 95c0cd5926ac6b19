# SPDX-License-Identifier: Apache-2.0
"""Instructions, flash and RAM of Ferrule's firmware on an emulated Cortex-M4, compared with TensorFlow Lite Micro's.

Ferrule's is built by arm-none-eabi-gcc -O3 for mps2-an386 and counted by QEMU (-icount, read through SysTick: within 40
instructions); TensorFlow Lite Micro's figures are those of peers.toml. Both RAM figures exclude the stack. Ferrule's
figures include the serial link and the start-up code; the other flash and RAM figures include the start-up code only.

    FERRULE_MODELS=... python benchmarks/firmware.py
"""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

from rich.console import Console
from rich.table import Table

import ferrule

GOAL = 0.5
"""Maximum share of the instructions of TensorFlow Lite Micro's reference kernels."""


def main() -> int:
    """Build and run the four models; return 1 if an output differs or the goal is missed."""
    folder = os.environ.get("FERRULE_MODELS")
    if not folder:
        sys.exit("set FERRULE_MODELS to the folder of the MLPerf Tiny models")
    peers = tomllib.loads((Path(__file__).parent / "peers.toml").read_text(encoding="utf-8"))
    table = Table(title="mps2-an386 (Cortex-M4), int8: ours / TFLM reference / TFLM + CMSIS-NN")
    for heading in ("model", "instructions", "of ref.", "of CMSIS-NN", "flash, B", "RAM without stack, B", "verdict"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    missed = False
    for model, peer in peers.items():
        network = ferrule.load(Path(folder) / f"{model}.tflite")
        report = ferrule.compile(network, board="mps2-an386", toolchain="arm-none-eabi-gcc").run(engine="qemu")
        ours = report.count_per_inference
        reference, fast = peer["reference"], peer["cmsis_nn"]
        flash, ram = report.memory.flash, report.memory.ram
        assert flash is not None  # the firmware's linker script is Ferrule's
        assert ram.total is not None
        table.add_row(
            model,
            f"{ours:,} / {reference['instructions']:,} / {fast['instructions']:,}",
            f"{ours / reference['instructions']:.2f}",
            f"{ours / fast['instructions']:.2f}",
            f"{flash.total:,} / {reference['flash']:,} / {fast['flash']:,}",
            f"{ram.total - ram.stack_reserved:,} / {reference['ram']:,} / {fast['ram']:,}",
            str(report.verdict),
        )
        missed |= report.verdict != "exact" or ours > GOAL * reference["instructions"]
    Console(width=170).print(table)
    print(f"goal: at most {GOAL} of the reference kernels' instructions: {'missed' if missed else 'met'}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
