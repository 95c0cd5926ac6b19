# SPDX-License-Identifier: Apache-2.0
"""The cost of the check of the devices' contract: the processor time of inferences with and without it.

Each row is a model of the folder FERRULE_MODELS with a device on mps2-an386. Two boards run the same firmware in one
process, one of them checked, and take turns, sample by sample; the best of 12 counts. Run it from a checkout:
python benchmarks/device_contract.py [--most PERCENT] [model ...]
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np

import ferrule
from ferrule.emulation import Machine, engine
from ferrule.graph import Array
from ferrule.testing import Board, start

MODELS = ("kws_ref_model", "ad01_int8", "pretrainedResnet_quant", "vww_96_int8")
BACKENDS = ("Woofles", "EthosU")
TURNS = 12


def boards(firmware: ferrule.Firmware) -> tuple[Board, Board]:
    """Return a board without the check and one with it."""
    with start(firmware) as donor:
        devices, description = tuple(donor.devices.values()), donor.description
    machine = Machine(board=description, elf=firmware.elf, devices=devices)  # without a plan of the commands
    return Board(machine, engine("unicorn"), firmware), start(firmware)


def seconds(board: Board, inputs: list[Array]) -> float:
    """Return the processor time of one inference."""
    start = time.process_time()
    board.run(inputs)
    return time.process_time() - start


def cost(firmware: ferrule.Firmware) -> tuple[float, float]:
    """Return the processor times of an inference without the check and with it, the shortest of all turns."""
    inputs = [np.zeros(info.shape, info.dtype.numpy) for info in firmware.network.inputs]
    plain, checked = boards(firmware)
    with plain, checked:
        for board in (plain, checked):
            seconds(board, inputs)  # translates the code
        spent: dict[Board, list[float]] = {plain: [], checked: []}
        for turn in range(TURNS):
            for board in (plain, checked) if turn % 2 else (checked, plain):  # neither profits from the order
                spent[board].append(seconds(board, inputs))
    return min(spent[plain]), min(spent[checked])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=float, help="fail if the sum of all rows costs more than this, in percent")
    parser.add_argument("models", nargs="*", default=MODELS)
    arguments = parser.parse_args()
    folder = os.environ.get("FERRULE_MODELS")
    if not folder:
        raise SystemExit("set FERRULE_MODELS to the folder with the MLPerf Tiny models")
    whole = np.zeros(2)
    for model in arguments.models:
        network = ferrule.load(Path(folder) / f"{model}.tflite")
        for backend in BACKENDS:
            firmware = ferrule.compile(network, board="mps2-an386", backends=[backend, "CpuAcc"])
            plain, checked = cost(firmware)
            whole += plain, checked
            print(f"{model}, {backend}: {plain:.3f} s, checked {checked:.3f} s, {checked / plain - 1:+.1%}", flush=True)
    more = whole[1] / whole[0] - 1
    print(f"all: {whole[0]:.3f} s, checked {whole[1]:.3f} s, {more:+.1%}")
    if arguments.most is not None and 100 * more > arguments.most:
        raise SystemExit(f"the check costs {more:.1%}, expected at most {arguments.most:g} %")


if __name__ == "__main__":
    main()
