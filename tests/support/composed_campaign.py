# SPDX-License-Identifier: Apache-2.0
"""Random networks over all operators, in files, on the host's backends, on a board, and in TensorFlow Lite Micro."""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from amounts import amount
from composed_checks import Run, bits_difference, difference, observed, reread_difference, sequence
from composed_networks import TYPES, composed_network, types_of
from merged import merged

import ferrule
from ferrule._frozen import frozen
from ferrule.errors import FerruleError
from ferrule.formats import to_tflite
from ferrule.graph import Array, Layer, LayerType
from ferrule.network import Network
from ferrule.operators.operator import Operands
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime

HOSTS = (("CpuAcc", "CpuRef"), ("GpuAcc", "CpuAcc", "CpuRef"))
"""The backends of the runs on the host, in the order of preference; what one refuses goes to the next."""
_LEAVES_MEMORY = frozenset(
    {LayerType.SPACE_TO_BATCH_ND, LayerType.SIGNAL_ENERGY, LayerType.SIGNAL_FRAMER, LayerType.SIGNAL_STACKER}
)
"""Operators of TensorFlow Lite Micro that leave parts of their output as the memory was."""
_SHIFTS = 32
_NEAR_THE_END = 2.0**30
"""Floats from here on are near or beyond the limits of int32."""
_ORACLE_S = 60.0
_BOARD_S = 600.0
"""Wall-clock seconds for one network in TensorFlow Lite Micro, and for one run of a firmware."""


@frozen
class Case:
    """The arguments of a composed network."""

    seed: int
    index: int
    integers: bool

    def network(self) -> Network:
        """Return the network."""
        return composed_network(self.seed, self.index, integers=self.integers)

    def inputs(self, network: Network) -> list[list[Array]]:
        """Return the inputs of a sequence of runs."""
        return sequence(network, self.seed + self.index)

    @property
    def command(self) -> str:
        """The options that repeat the case."""
        return f"--seed {self.seed} --first {self.index} --count 1" + (" --integers" if self.integers else " --floats")


@dataclass(slots=True)
class Report:
    """What a campaign found."""

    networks: int = 0
    layers: Counter[LayerType] = field(default_factory=Counter)
    """The layers of each type, with those of called graphs."""
    compared: Counter[str] = field(default_factory=Counter)
    """The networks compared, by what ran them."""
    on: Counter[str] = field(default_factory=Counter)
    """The layers that each backend of the host ran."""
    refusals: Counter[str] = field(default_factory=Counter)
    """Why networks did not run, with their number."""
    failures: list[str] = field(default_factory=list)

    @property
    def absent(self) -> set[LayerType]:
        """The layer types that no network had."""
        return set(TYPES) - set(self.layers)


@frozen
class Setting:
    """What a campaign runs."""

    hosts: Sequence[Sequence[str]] = HOSTS
    board: str = "mps2-an386"
    """Empty for none."""
    toolchain: str = "arm-none-eabi-gcc"
    oracle: bool = True
    """Whether TensorFlow Lite Micro is run."""


def check(cases: Sequence[Case], setting: Setting, report: Report) -> None:
    """Run networks in all ways of the setting; those for the board share a firmware."""
    networks = [(case, case.network()) for case in cases]
    for case, network in networks:
        report.networks += 1
        report.layers.update(types_of(network))
        _attempt(report, case, "file", partial(reread_difference, network, case.inputs(network)))
    with Runtime() as runtime:
        for preferences in setting.hosts:
            for case, network in networks:
                run = partial(_host_difference, runtime, preferences, case, network, report)
                _attempt(report, case, preferences[0], run)
    if setting.oracle:
        _check_with_oracle(networks, report)
    if setting.board:
        _check_on_board(networks, setting, report)


def _attempt(report: Report, case: Case, what: str, run: Callable[[], str]) -> None:
    """Note the result of a comparison: that it was made, why it could not be, or a difference."""
    try:
        wrong = run()
    except FerruleError as error:
        report.refusals[f"{what}: {str(error).splitlines()[0]}"] += 1
        return
    except Exception as error:  # noqa: BLE001 - any other exception is a failure of this case
        wrong = f"{type(error).__name__}: {error}"
    report.compared[what] += 1
    if wrong:
        report.failures.append(f"{what}, {case.command}: {wrong}")


def _host_difference(runtime: Runtime, preferences: Sequence[str], case: Case, network: Network, report: Report) -> str:
    """Compare each layer with numpy, then the run of the simplified network with that of the observed one."""
    seen = observed(network, private=True)
    inputs = case.inputs(network)
    outputs, owners = _host_outputs(runtime, preferences, seen, inputs, simplify=False)
    report.on.update(f"{preferences[0]} first: {owner}" for owner in owners)
    wrong = difference(seen, inputs, outputs)
    if wrong:
        return wrong
    plain, _ = _host_outputs(runtime, preferences, network, inputs, simplify=True)
    return bits_difference(network, plain, seen, outputs)


def _host_outputs(
    runtime: Runtime, preferences: Sequence[str], network: Network, inputs: Sequence[Run], *, simplify: bool
) -> tuple[list[list[Array]], list[str]]:
    options = OptimizerOptions(simplify=simplify, import_enabled=simplify, export_enabled=simplify)
    optimized = optimize(network, preferences, runtime.registry, options)
    number = runtime.load_network(optimized)
    try:
        outputs = [[array.copy() for array in runtime.enqueue_workload(number, given)] for given in inputs]
    finally:
        runtime.unload_network(number)
    return outputs, [str(given.backend) for given in optimized.assignment.values()]


def _check_on_board(networks: Sequence[tuple[Case, Network]], setting: Setting, report: Report) -> None:
    """Run networks in one firmware; if that is not possible, each half alone.

    Networks with floats run twice, observed and with their own outputs only, which must have the same bits.
    """
    parts = [
        (case, network, [network] if case.integers else [observed(network, private=True), network])
        for case, network in networks
    ]
    inputs = [case.inputs(network) for case, network, variants in parts for _ in variants]
    try:
        outputs = iter(_board_outputs(setting, [each for *_, variants in parts for each in variants], inputs))
    except FerruleError as error:
        if len(networks) == 1:
            report.refusals[f"{setting.board}: {str(error).splitlines()[0]}"] += 1
            return
        middle = len(networks) // 2
        _check_on_board(networks[:middle], setting, report)
        _check_on_board(networks[middle:], setting, report)
        return
    for case, network, variants in parts:
        found = [next(outputs) for _ in variants]
        _attempt(report, case, setting.board, partial(_board_difference, case, network, variants, found))


def _board_difference(case: Case, network: Network, variants: Sequence[Network], found: Sequence[Sequence[Run]]) -> str:
    inputs = case.inputs(network)
    if len(variants) > 1:
        return difference(variants[0], inputs, found[0]) or bits_difference(network, found[1], variants[0], found[0])
    state = network.initial_state()
    with np.errstate(all="ignore"):
        wanted = [network.run(given, state=state) for given in inputs]
    return bits_difference(network, found[0], network, wanted)


def _board_outputs(
    setting: Setting, networks: Sequence[Network], inputs: Sequence[Sequence[Run]]
) -> list[list[list[Array]]]:
    """Return the outputs of each run of each network."""
    runs = len(inputs[0])
    stacked = [np.concatenate(arrays) for given in inputs for arrays in zip(*given, strict=True)]
    firmware = ferrule.compile(merged(networks), board=setting.board, toolchain=setting.toolchain)
    outputs = iter(firmware.run(stacked, timeout_s=_BOARD_S).outputs)
    made = []
    for network in networks:
        own = [next(outputs).reshape(runs, *info.shape) for info in network.outputs]
        made.append([[array[run] for array in own] for run in range(runs)])
    return made


def _check_with_oracle(networks: Sequence[tuple[Case, Network]], report: Report) -> None:
    """Compare networks with TensorFlow Lite Micro, which runs in processes of its own, since it may abort."""
    seen: dict[Case, Network] = {}
    with tempfile.TemporaryDirectory(prefix="ferrule-composed-") as name:
        folder = Path(name)
        for number, (case, network) in enumerate(networks):
            seen[case] = observed(network, private=False)
            try:
                model = to_tflite(seen[case])
            except FerruleError as error:
                report.refusals[f"file: {str(error).splitlines()[0]}"] += 1
                continue
            (folder / f"{number}.in").write_bytes(pickle.dumps((model, case.inputs(network))))
        for number, found in _oracle_answers(folder, len(networks)):
            case, network = networks[number]
            if isinstance(found, str):
                report.refusals[f"TFLM: {found}"] += 1
                continue
            run = partial(difference, seen[case], case.inputs(network), found, _undefined_in_tflm)
            _attempt(report, case, "TFLM", run)


def _oracle_answers(folder: Path, count: int) -> Iterator[tuple[int, str | list[list[Array]]]]:
    """Yield the outputs of each network, or why the interpreter has none."""
    for number in range(count):
        if not (folder / f"{number}.in").exists():
            continue
        answer = folder / f"{number}.out"
        if not answer.exists():
            argv = [sys.executable, __file__, str(folder), str(number), str(count)]
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, check=False, timeout=_ORACLE_S * count)
            if not answer.exists():
                answer.write_bytes(pickle.dumps(f"the process ended with {done.returncode}"))
        yield number, pickle.loads(answer.read_bytes())  # noqa: S301 - written by this program


def answer_all(folder: Path, first: int, count: int) -> None:
    """Run the networks of the folder from the first on, and write their outputs; an abort ends the process."""
    from oracle import tflm_sequence

    for number in range(first, count):
        source = folder / f"{number}.in"
        if not source.exists():
            continue
        model, inputs = pickle.loads(source.read_bytes())  # noqa: S301 - written by this program
        log = folder / "log"
        with log.open("wb") as messages:
            os.dup2(messages.fileno(), 2)
        try:
            result: object = tflm_sequence(model, inputs)
        except RuntimeError as error:
            lines = [*log.read_text(encoding="utf-8").splitlines(), str(error)]
            result = lines[0]
        (folder / f"{number}.out").write_bytes(pickle.dumps(result))


def _undefined_in_tflm(layer: Layer, operands: Operands, inputs: Sequence[Array | None]) -> bool:
    """Whether docs/operators.md says that TensorFlow Lite Micro's result is undefined or less precise."""
    arrays = [array for array in inputs if array is not None]
    first, floats = arrays[0], arrays[0].dtype.kind == "f"
    match layer.type:
        case LayerType.CAST | LayerType.QUANTIZE if floats:
            scale = operands.output.scale if layer.type is LayerType.QUANTIZE else 1.0
            with np.errstate(all="ignore"):
                return not bool((np.abs(first / scale) < _NEAR_THE_END).all())
        case LayerType.LOGISTIC:
            return floats
        case LayerType.DIV if not floats:
            divisor = operands.input(1)
            return bool((arrays[1] == (0 if divisor.quantization is None else divisor.zero_point)).any())
        case LayerType.SIGNAL_FILTER_BANK_SQUARE_ROOT:
            return not 0 <= int(arrays[1].reshape(-1)[0]) < _SHIFTS
        case type_ if type_ in _LEAVES_MEMORY:
            return True
        case LayerType.SLICE if len(arrays) > 1:
            room = np.array(first.shape) - operands.output.shape
            return not bool(((arrays[1] >= 0) & (arrays[1] <= room)).all())
        case LayerType.GATHER:
            extent = first.shape[layer.descriptor.axis]  # type: ignore[attr-defined]
            return not bool(((arrays[1] >= 0) & (arrays[1] < extent)).all())
        case _:
            return False


def run_campaign(setting: Setting, *, seed: int, first: int, count: int, batch: int, kinds: Sequence[bool]) -> Report:
    """Check `count` networks of each kind: with integers only (True), and with floats, too."""
    report = Report()
    cases = [Case(seed=seed, index=index, integers=kind) for index in range(first, first + count) for kind in kinds]
    for start in range(0, len(cases), batch):
        began, failed = time.monotonic(), len(report.failures)
        check(cases[start : start + batch], setting, report)
        for failure in report.failures[failed:]:
            print(f"DIFFERENT: {failure}\n", flush=True)
        print(f"{report.networks} of {len(cases)} networks ({time.monotonic() - began:.1f} s)", flush=True)
    return report


def main(description: str) -> int:
    """Run a campaign as the command line says; return 1 if a result differs or an operator did not occur."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=amount, default=200, help="networks of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first network")
    parser.add_argument("--batch", type=amount, default=12, help="networks in one firmware")
    parser.add_argument("--board", default=Setting().board, help="'none' for no board")
    parser.add_argument("--toolchain", default=Setting().toolchain)
    parser.add_argument("--no-oracle", action="store_true", help="without TensorFlow Lite Micro")
    parser.add_argument("--integers", action="store_true", help="only networks without floats")
    parser.add_argument("--floats", action="store_true", help="only networks with floats")
    options = parser.parse_args()
    board = "" if options.board == "none" else options.board
    setting = Setting(board=board, toolchain=options.toolchain, oracle=not options.no_oracle)
    kinds = [kind for kind, left_out in ((False, options.integers), (True, options.floats)) if not left_out]
    report = run_campaign(
        setting, seed=options.seed, first=options.first, count=options.count, batch=options.batch, kinds=kinds
    )
    for type_ in sorted(TYPES):
        print(f"{report.layers[type_]:7,} {type_}")
    for counted in (report.on, report.compared, report.refusals):
        for what, number in sorted(counted.items()):
            print(f"{number:7,} {what}")
    for failure in report.failures:
        print(f"DIFFERENT: {failure}")
    if report.absent and options.count > 1:
        print(f"no network has {', '.join(sorted(report.absent))}")
    return int(bool(report.failures) or (bool(report.absent) and options.count > 1))


if __name__ == "__main__":
    answer_all(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
