# SPDX-License-Identifier: Apache-2.0
"""The tables of planned times: their measurement, and planned beside emulated times of networks."""

from __future__ import annotations

import argparse
import os
import re
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory, mkdtemp

import numpy as np
from corpus_shapes import CASES, KINDS, WITHOUT, corpus
from firmware_figures import MODELS, file_of
from mobilenet_v2 import mobilenet_v2

import ferrule
from ferrule import override
from ferrule.boards import Board, load_board
from ferrule.emulation import Clock
from ferrule.firmware import Job, emit, planned_time
from ferrule.graph import Array
from ferrule.network import Network
from ferrule.timing import timed_cores
from ferrule.timing.planned import FOLDER, Accesses, KernelTimings, KernelWork, kernel_timings

TOOLCHAINS = ("arm-none-eabi-gcc", "zig")
CORPUS_TOOLCHAIN = "zig"
"""That of the corpus; networks are built by both."""
GOALS = ("speed", "balanced", "size")
"""Those whose kernels are measured; the goal `time` chooses among them, and `memory` runs them in bands."""
BOARDS = {
    "cortex-m0": "mps2-an385",
    "cortex-m0plus": "mps2-an385",
    "cortex-m3": "mps2-an385",
    "cortex-m4": "mps2-an386",
    "cortex-m7": "mps2-an500",
    "cortex-m33": "mps2-an505",
}
"""By core: a board whose memories have no wait states and room for the corpus; it may have another core."""
FLOATS = {
    "ad_f32": "ad01_fp32",
    "ic_f32": "pretrainedResnet",
    "vww_f32": "vww_96_float",
}
"""The float32 networks of MLPerf Tiny, which the tables are not fitted to."""
_WITHOUT_FPU = ("ad_f32",)
"""Those that also run on cores without floating point."""
_TIMEOUT_S = 900.0
_WAITING = {
    "narrow": "wait_states = 1\nwidth_bytes = 4",
    "wide": "wait_states = 1\nwidth_bytes = 16",
    "cached": "wait_states = 1\nwidth_bytes = 8\ninstruction_cache = { sets = 32, ways = 4, line_bytes = 8 }",
    "held": "wait_states = 1\nwidth_bytes = 8\ninstruction_cache = { sets = 1024, ways = 4, line_bytes = 8 }",
}
"""The memories in which accesses are counted, by name: all code stays in the cache of the last."""
_NARROW, _WIDE = 4, 16
"""Bytes that the first two deliver at once."""
_WAITING_MODELS = ("ad", "kws")
"""The networks in which accesses are counted, which takes ten times as long as their cycles alone."""
KIN = {"cortex-m0": "cortex-m0plus", "cortex-m7": "cortex-m4", "cortex-m33": "cortex-m4"}
"""Cores that run the kernels of another one, whose accesses are taken for theirs."""
_FOLDER = TemporaryDirectory()
"""Of boards with other cores, until the process ends."""
_FIT_POWER = 0.75
"""1 would fit relative errors, so that small layers count as much as large ones, and 0.5 the sum of all cycles."""
_LEAST_LAYERS, _LEAST_SPREAD = 4, 4
"""The layers, and the multiple of the least bytes for a unit of work, from which bytes of weights are told apart."""
_WORTH_BYTES = 0.9
"""A term for bytes of weights must lower the error to this."""
_HEADER = """\
# SPDX-License-Identifier: Apache-2.0
# What kernels take on a {core} in memories without wait states, in cycles: for each instruction of their estimate and
# each byte of weights, or for each element of the layer's largest tensor. Fitted to layers of the shapes of
# tests/corpus.py and of the MLPerf Tiny models in int8, built by zig, the models by arm-none-eabi-gcc, too, in the
# embedded engine with the clock `cycles`. [accesses] are those to the memories of code and weights, counted in kws and
# ad{kin}.
# Written by `python benchmarks/planned_time.py {core} --update`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A layer that ran."""

    work: KernelWork
    cycles: int
    macs: int
    outputs: int
    """Elements that it writes."""

    @property
    def units(self) -> int:
        """The instructions of its estimate, or its elements."""
        return self.work.elements if self.work.instructions is None else self.work.instructions


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The time of an inference of a network."""

    network: str
    toolchain: str
    emulated: int
    planned: int
    """Cycles."""
    held_out: bool
    """Whether the tables are not fitted to it."""

    @property
    def ratio(self) -> float:
        """Planned as a multiple of emulated."""
        return self.planned / self.emulated

    @override
    def __str__(self) -> str:
        kind = "held out" if self.held_out else "fitted"
        return f"{self.network:14}{self.toolchain:20}{self.planned:>12,}{self.emulated:>12,}{self.ratio:>7.3f}  {kind}"


@cache
def board_of(core: str, waits: str = "") -> Board:
    """Return a board with a core whose memories have room for the corpus, and no wait states.

    `waits` is what board.toml is to state of the memory with code and weights instead.
    """
    board = load_board(BOARDS[core])
    boards = Path(mkdtemp(dir=_FOLDER.name))
    copytree(board.folder.parent / "mps2", boards / "mps2")
    copytree(board.folder, boards / board.name)
    platform, description = boards / board.name / board.platform.name, boards / board.name / "board.toml"
    text = platform.read_text(encoding="utf-8")
    platform.write_text(text.replace(board.cpu.type, core.replace("plus", "+")), encoding="utf-8")
    tables = re.split(r"^(?=\[)", description.read_text(encoding="utf-8"), flags=re.MULTILINE)
    kept = [table for table in tables if not table.startswith("[timing")]
    stated = f'\n[timing]\nsource = "made up"\n[timing.{board.placement.code}]\n{waits}\n'
    description.write_text("".join((*kept, stated)), encoding="utf-8")
    return load_board(boards / board.name)


def fitted_networks() -> Iterator[tuple[str, Network | Path]]:
    """Yield the MLPerf Tiny networks in int8 that the tables are fitted to."""
    folder = Path(os.environ["FERRULE_MODELS"])
    for name in MODELS:
        path = file_of(folder, name)
        assert path is not None
        yield name, path


def other_networks(core: str) -> Iterator[tuple[str, Network | Path]]:
    """Yield networks that the tables are not fitted to."""
    folder, hard = Path(os.environ["FERRULE_MODELS"]), board_of(core).cpu.hard_float
    for name, file in FLOATS.items():
        if hard or name in _WITHOUT_FPU:
            yield name, folder / f"{file}.tflite"
    yield "mobilenet_v2", mobilenet_v2(64, 0.35, classes=10, blocks=8)


def compiled(network: Network | Path, core: str, toolchain: str, goal: str, waits: str = "") -> ferrule.Firmware:
    """Return the firmware of a network for a core; `waits` as for `board_of`."""
    return ferrule.compile(network, board=board_of(core, waits), toolchain=toolchain, goal=goal)


def layers_of(firmware: ferrule.Firmware) -> tuple[int, list[Measured]]:
    """Run a firmware; return the cycles of an inference, and its layers on the core."""
    report = firmware.run(engine="unicorn", clock=Clock.CYCLES, timeout_s=_TIMEOUT_S)
    assert report.verdict.agrees, f"{firmware}: the outputs differ from the reference"
    records = {record.layer: record for record in firmware.artifact.operators}
    elements = {tensor.info.name: tensor.info.elements for tensor in firmware.artifact.graph.tensors}
    return report.count.per_inference, [
        Measured(
            work=works[0], cycles=layer.count, macs=layer.macs, outputs=sum(elements[name] for name in layer.outputs)
        )
        for layer in report.layers
        if len(works := records[layer.name].works) == 1
    ]


def compare(name: str, network: Network | Path, core: str, toolchain: str, *, held_out: bool) -> Compared:
    """Return the planned time of a network beside the emulated one."""
    firmware = compiled(network, core, toolchain, "balanced")
    planned = planned_time(firmware.artifact, firmware.board)
    assert planned is not None, f"{core} has no table"
    emulated, _ = layers_of(firmware)
    return Compared(network=name, toolchain=toolchain, emulated=emulated, planned=planned.cycles, held_out=held_out)


def chosen_kernels(kind: str, board: Board, goal: str, words: Sequence[str] = ()) -> dict[str, KernelWork]:
    """Return the work of the corpus's layers on a board's core, by layer, without a build."""
    artifact = emit(corpus(kind, words), Job(board=board, goal=goal))
    return {record.layer: record.works[0] for record in artifact.operators if len(record.works) == 1}


def corpora(core: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield kinds, goals and shapes of the corpus, which together have each kernel that a goal chooses for a shape."""
    for kind in KINDS:
        known: set[tuple[str, str]] = set()
        for goal in GOALS:
            chosen = {layer: work.kernel for layer, work in chosen_kernels(kind, board_of(core), goal).items()}
            new = [layer.removesuffix("_pre") for layer, kernel in chosen.items() if (layer, kernel) not in known]
            known |= {*chosen.items()}
            names = tuple(name for name, *_ in CASES if name in new and name not in WITHOUT[kind])
            if names:
                yield kind, goal, names


def measured(core: str) -> Iterator[Measured]:
    """Yield the layers to which the table of a core is fitted."""
    for _, network in fitted_networks():
        for toolchain in TOOLCHAINS:
            yield from layers_of(compiled(network, core, toolchain, "balanced"))[1]
    for kind, goal, names in corpora(core):
        yield from layers_of(compiled(corpus(kind, names), core, CORPUS_TOOLCHAIN, goal))[1]


def counted(core: str) -> dict[str, Accesses]:
    """Return the accesses of kernels on a core, from what their layers wait for memories with one wait state."""
    networks = [path for name, path in fitted_networks() if name in _WAITING_MODELS]
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    """By kernel: the cycles in each memory, and the units of work."""
    for network in networks:
        for name, waits in {"": "", **_WAITING}.items():
            _, layers = layers_of(compiled(network, core, CORPUS_TOOLCHAIN, "balanced", waits))
            for each in (layer for layer in layers if layer.units):
                found[each.work.kernel][name] += each.cycles / each.units
                found[each.work.kernel]["units"] += 1 / len(_WAITING | {"": ""})
    return {kernel: _accesses(sums) for kernel, sums in sorted(found.items())}


def _accesses(sums: Mapping[str, float]) -> Accesses:
    waited = {name: (sums[name] - sums[""]) / sums["units"] for name in _WAITING}
    narrow, wide, misses = (waited[name] - waited["held"] for name in ("narrow", "wide", "cached"))
    code = (narrow - wide) / (1 / _NARROW - 1 / _WIDE)
    rates = {"code_bytes": code, "jumps": wide - code / _WIDE, "misses": misses, "reads": waited["held"]}
    return Accesses(**{name: float(f"{max(rate, 0):.3g}") for name, rate in rates.items()})


def fitted(core: str, layers: Sequence[Measured], accesses: Mapping[str, Accesses]) -> KernelTimings:
    """Return the table of a core: the cycles of each kernel for each unit of its work, and for each byte of weights."""
    kernels: dict[bool, dict[str, list[Measured]]] = {False: defaultdict(list), True: defaultdict(list)}
    for each in layers:
        if each.units and each.cycles:
            kernels[each.work.instructions is None][each.work.kernel].append(each)
    found = {kernel: _rates(each) for kernel, each in sorted(kernels[False].items())}
    elements = {kernel: _rounded(_rate(each)) for kernel, each in sorted(kernels[True].items())}
    int8 = [each for each in layers if each.work.kernel.endswith("_s8")]
    per_output = statistics.median(each.cycles / each.outputs for each in int8 if not each.macs)
    weighted = [each for each in int8 if each.macs]
    left = sum(each.cycles - per_output * each.outputs for each in weighted)
    return KernelTimings(
        core=core,
        per_instruction={kernel: _rounded(unit) for kernel, (unit, _) in found.items()},
        per_weight_byte={kernel: _rounded(byte) for kernel, (_, byte) in found.items() if byte},
        per_element=elements,
        per_mac=_rounded(left / sum(each.macs for each in weighted)),
        per_output=_rounded(per_output),
        accesses=dict(accesses),
    )


def _weights(layers: Sequence[Measured]) -> Array:
    """Return the weight of each layer in a fit, which is between that of relative and of absolute errors."""
    return np.array([each.cycles for each in layers]) ** -_FIT_POWER


def _rate(layers: Sequence[Measured]) -> float:
    """Return the cycles of a kernel's layers for each unit of their work."""
    weights = _weights(layers)
    units, cycles = (
        weights * np.array(each) for each in zip(*((one.units, one.cycles) for one in layers), strict=True)
    )
    return float(units @ cycles / (units @ units))


def _rates(layers: Sequence[Measured]) -> tuple[float, float]:
    """Return the cycles of a kernel's layers for each unit of their work and for each byte of weights.

    The second is 0 unless the layers tell both apart and the error becomes clearly smaller by it.
    """
    alone, weights = _rate(layers), _weights(layers)
    units, sizes, cycles = (
        np.array(each, float)
        for each in zip(*((one.units, one.work.weight_bytes, one.cycles) for one in layers), strict=True)
    )
    shares = sizes / units
    if len(layers) < _LEAST_LAYERS or shares.max() < _LEAST_SPREAD * shares.min() or not shares.max():
        return alone, 0.0
    terms = np.column_stack([units, sizes])
    (unit, byte), *_ = np.linalg.lstsq(terms * weights[:, None], cycles * weights, rcond=None)
    errors = [float(np.square(terms @ rates / cycles - 1).mean()) for rates in ([alone, 0], [unit, byte])]
    better = min(unit, byte) > 0 and errors[1] < _WORTH_BYTES**2 * errors[0]
    return (float(unit), float(byte)) if better else (alone, 0.0)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def write(timings: KernelTimings, folder: Path = FOLDER) -> None:
    """Write the table of a core."""
    kin = KIN.get(timings.core)
    header = _HEADER.format(core=timings.core, kin=f" on a {kin}" if kin else "")
    lines = [header.rstrip("\n"), f'core = "{timings.core}"']
    lines += [f"{name} = {getattr(timings, name)}" for name in ("per_mac", "per_output")]
    tables: Mapping[str, Mapping[str, float]] = {
        "per_instruction": timings.per_instruction,
        "per_weight_byte": timings.per_weight_byte,
        "per_element": timings.per_element,
    }
    for title, kernels in tables.items():
        if not kernels:
            continue
        lines += ["", f"[{title}]"]
        lines += [f'"{kernel}" = {float(value)}' for kernel, value in kernels.items()]
    lines += ["", "[accesses]"] if timings.accesses else []
    for kernel, rates in timings.accesses.items():
        values = (f"{name} = {getattr(rates, name)}" for name in Accesses.__struct_fields__)
        lines.append(f'"{kernel}" = {{ {", ".join(values)} }}')
    (folder / f"{timings.core}.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(description: str, arguments: Sequence[str] | None = None) -> int:
    """Measure tables if asked, and compare planned with emulated times."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cores", nargs="*", metavar="CORE", help="by default all with a model")
    parser.add_argument("--update", action="store_true", help="measure the tables of the cores anew, and write them")
    parser.add_argument("--accesses", action="store_true", help="with --update: also count accesses, which takes long")
    parser.add_argument("--toolchain", action="append", choices=TOOLCHAINS, help="compare with these alone")
    options = parser.parse_args(arguments)
    cores = options.cores or [core for core in timed_cores() if core in BOARDS]
    for core in cores:
        if options.update:
            known, kin = kernel_timings(core), KIN.get(core)
            known = known if kin is None else kernel_timings(kin)
            accesses = {} if known is None else known.accesses
            if options.accesses and kin is None:
                accesses = counted(core)
            write(fitted(core, [*measured(core)], accesses))
            kernel_timings.cache_clear()
        ratios = []
        print(f"{core}: network, toolchain, planned, emulated, planned / emulated", flush=True)
        networks = [(*each, False) for each in fitted_networks()] + [(*each, True) for each in other_networks(core)]
        for name, network, held_out in networks:
            for toolchain in options.toolchain or TOOLCHAINS:
                found = compare(name, network, core, toolchain, held_out=held_out)
                ratios.append(abs(found.ratio - 1))
                print(f"  {found}", flush=True)
        print(f"  at most {max(ratios):.1%} off, median {statistics.median(ratios):.1%}", flush=True)
    return 0
