# SPDX-License-Identifier: Apache-2.0
"""The cost of the check of ownership: the engine's CPU time with and without it.

Each row is a model of the folder FERRULE_MODELS on a board; the engine runs one sample with a count for each layer and
once more without, as `ferrule run` does, best of 3. Run it from a checkout: python benchmarks/ownership.py
[model ...]
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import ferrule
from ferrule.emulation import Machine, OwnershipPlan, engine, ownership_plan
from ferrule.emulation.attached import attached_devices
from ferrule.link import LinkSession
from ferrule.network.samples import pattern_sample

MODELS = ("ad01_int8", "kws_ref_model", "pretrainedResnet_quant", "vww_96_int8")
PLACES = (("mps2-an386", "CpuAcc"), ("mps2-an386", "Woofles"), ("mps2-an500", "CpuAcc"), ("mps2-an500", "Woofles"))
REPEATS = 3
TIMEOUT_S = 600.0


def seconds(firmware: ferrule.Firmware, plan: OwnershipPlan | None) -> float:
    """Return the engine's CPU time for a sample's two runs, without the firmware's start."""
    devices = attached_devices(firmware.artifact, firmware.image)
    machine = Machine(board=firmware.board, elf=firmware.elf, devices=devices, ownership=plan)
    sample = pattern_sample(firmware.network.inputs)
    with engine("unicorn").start(machine) as session:
        link = LinkSession(session.channel(), run_timeout_s=TIMEOUT_S, start_timeout_s=TIMEOUT_S)
        link.model_info()
        start = time.process_time()
        link.run(sample, profile=True)
        link.run(sample, profile=False)
        return time.process_time() - start


def main() -> None:
    folder = os.environ.get("FERRULE_MODELS")
    if not folder:
        raise SystemExit("set FERRULE_MODELS to the folder with the MLPerf Tiny models")
    for model in sys.argv[1:] or MODELS:
        network = ferrule.load(Path(folder) / f"{model}.tflite")
        for board, backend in PLACES:
            firmware = ferrule.compile(network, board=board, backends=list(dict.fromkeys([backend, "CpuAcc"])))
            plan = ownership_plan(firmware.artifact, firmware.image)
            plain = min(seconds(firmware, None) for _ in range(REPEATS))
            checked = min(seconds(firmware, plan) for _ in range(REPEATS))
            print(
                f"{model} on {board}, {backend}: {plain:.3f} s, checked {checked:.3f} s, {checked / plain:.2f} times",
                flush=True,
            )


if __name__ == "__main__":
    main()
