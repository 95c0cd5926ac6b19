# SPDX-License-Identifier: Apache-2.0
"""The cost of the check of the devices' contract: the processor time of inferences with and without it.

Each row is a model of the folder FERRULE_MODELS with a device on mps2-an386. Two boards run the same firmware in one
process, one of them checked, and take turns, sample by sample. Processor times differ by a tenth from run to run on a
machine with other work, so the cost is the median of the ratios of neighbouring runs. Run it from a checkout:
python benchmarks/device_contract.py [--most PERCENT] [--pairs N] [model ...]
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path

import numpy as np

import ferrule
from ferrule.emulation import Machine, engine
from ferrule.graph import Array
from ferrule.testing import Board, start

MODELS = ("kws_ref_model", "ad01_int8", "pretrainedResnet_quant", "vww_96_int8")
BACKENDS = ("Woofles", "EthosU")
PAIRS = 100


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


def cost(firmware: ferrule.Firmware, pairs: int) -> tuple[float, float]:
    """Return the processor time of an inference without the check, and the factor by which the check changes it."""
    inputs = [np.zeros(info.shape, info.dtype.numpy) for info in firmware.network.inputs]
    plain, checked = boards(firmware)
    with plain, checked:
        for board in (plain, checked):
            seconds(board, inputs)  # translates the code
        spent: dict[Board, list[float]] = {plain: [], checked: []}
        for turn in range(pairs):
            for board in (plain, checked) if turn % 2 else (checked, plain):  # neither profits from the order
                spent[board].append(seconds(board, inputs))
    ratios = [after / before for before, after in zip(spent[plain], spent[checked], strict=True)]
    return statistics.median(spent[plain]), statistics.median(ratios)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=float, help="fail if the sum of all rows costs more than this, in percent")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="runs with and without the check, per row")
    parser.add_argument("models", nargs="*", default=MODELS)
    arguments = parser.parse_args()
    folder = os.environ.get("FERRULE_MODELS")
    if not folder:
        raise SystemExit("set FERRULE_MODELS to the folder with the MLPerf Tiny models")
    before = after = 0.0
    for model in arguments.models:
        network = ferrule.load(Path(folder) / f"{model}.tflite")
        for backend in BACKENDS:
            firmware = ferrule.compile(network, board="mps2-an386", backends=[backend, "CpuAcc"])
            plain, factor = cost(firmware, arguments.pairs)
            before, after = before + plain, after + plain * factor
            print(f"{model}, {backend}: {plain:.3f} s, with the check {factor - 1:+.1%}", flush=True)
    more = after / before - 1
    print(f"all: {before:.3f} s, with the check {more:+.1%}")
    if arguments.most is not None and 100 * more > arguments.most:
        raise SystemExit(f"the check costs {more:.1%}, expected at most {arguments.most:g} %")


if __name__ == "__main__":
    main()
