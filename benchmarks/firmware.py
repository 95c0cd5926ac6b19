# SPDX-License-Identifier: Apache-2.0
"""Instructions, estimated cycles, flash and RAM of Ferrule's firmware, compared with TensorFlow Lite Micro's and goals.

    FERRULE_MODELS=... python benchmarks/firmware.py [--toolchain T] [--lane L] [--layers] [--state FILE] [--readme]

Instructions are exact, counted by the engine unicorn (by QEMU, within 40, for Cortex-M55); cycles are the estimates of
cycles.py, of gcc's firmware. The peers' figures are those of peers.toml, the lower bounds of layers those of the
report. RAM is without the stacks and the test link's buffers; the peers' is without the stack. Flash includes the
link and the start-up code; the peers' includes the start-up code only. With --state, measured figures are kept in a
file and not measured again. The exit status is 1 if an output differs from the reference, or a goal is missed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import cycles
from firmware_figures import MODELS, Figures, Layer, build, measure
from rich.console import Console
from rich.table import Table

TOOLCHAINS = ("arm-none-eabi-gcc", "zig")
ROOT = Path(__file__).resolve().parent
MOST_DIFFERENCE = 0.03
"""Between the toolchains' instructions."""
MOST_DIFFERENCE_WITHOUT_ASSEMBLER = 0.06
"""The same on Cortex-M0+, for which no loop is in assembler: all are as the compilers make them."""
FAR_FROM_BOUND = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A board and a goal for which firmware is built."""

    title: str
    board: str
    goal: str
    core: str
    """As in peers.toml."""
    cycles: bool = False
    instructions: Mapping[str, float] | None = None
    """The goals, by model."""
    most_cycles: Mapping[str, float] | None = None
    activations: Mapping[str, int] | None = None


def _of(*values: float) -> dict[str, float]:
    return dict(zip(MODELS, values, strict=True))


def _bytes(*values: int) -> dict[str, int]:
    return dict(zip(MODELS, values, strict=True))


LANES = {
    "m4-speed": Lane(
        title="Cortex-M4, --goal speed",
        board="mps2-an386",
        goal="speed",
        core="m4",
        cycles=True,
        instructions=_of(8.0e6, 2.71e6, 4.9e6, 0.28e6),
        most_cycles=_of(13e6, 3.65e6, 7.5e6, 0.39e6),  # of kws it has been 3.66 M before
    ),
    "m4": Lane(
        title="Cortex-M4",
        board="mps2-an386",
        goal="balanced",
        core="m4",
        cycles=True,
        instructions=_of(9.0e6, 2.8e6, 5.2e6, 0.28e6),
        activations=_bytes(33_808, 8_384, 36_864, 768),  # of ic with 512 B for Winograd's tiles, by their price
    ),
    "m4-memory": Lane(
        title="Cortex-M4, --goal memory",
        board="mps2-an386",
        goal="memory",
        core="m4",
        # 8,000 B of kws are one tensor, in place: row by row, its layers take more than 1.15 times the instructions.
        activations=_bytes(20_000, 8_000, 28_200, 768),
    ),
    "m55-speed": Lane(
        title="Cortex-M55 with MVE, --goal speed",
        board="mps3-an547",
        goal="speed",
        core="m55",
        cycles=True,
        instructions=_of(2.6e6, 0.85e6, 2.0e6, 0.075e6),
    ),
    "m55": Lane(title="Cortex-M55 with MVE", board="mps3-an547", goal="balanced", core="m55", cycles=True),
    "m3-speed": Lane(
        title="Cortex-M3, --goal speed",
        board="mps2-an385",
        goal="speed",
        core="m3",
        instructions=_of(28e6, 6.5e6, 11.6e6, 0.65e6),
    ),
    "m3": Lane(title="Cortex-M3", board="mps2-an385", goal="balanced", core="m3"),
    "m0plus": Lane(title="Cortex-M0+", board="stm32g0b1", goal="balanced", core="m0plus"),
}
MOST_FOR_MEMORY = _of(1.5, 1.15, 1.15, 1.15)
"""Instructions for the goal `memory`, as a multiple of those for `balanced`, which has a price for the bytes of ic."""
RAM_SHARE = _of(0.64, 0.45, 0.40, 0.55)
"""Of CMSIS-NN's RAM, for the goal `balanced` on Cortex-M4."""
FLASH_SHARE = _of(1.0, 0.49, 0.22, 0.95)
"""The weights of ic are transformed at build time, at the price of `balanced`; untransformed, they take 0.65."""

Results = dict[str, dict[str, Any]]
"""By lane, model and toolchain: the figures, and `cycles` if they were estimated."""


def main() -> int:
    """Measure, and print the tables; return 1 if an output differs or a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toolchain", action="append", choices=TOOLCHAINS, help="all if not given")
    parser.add_argument("--lane", action="append", choices=LANES, help="board and goal; all if not given")
    parser.add_argument("--model", action="append", choices=MODELS, help="all if not given")
    parser.add_argument("--layers", action="store_true", help="also each layer beside its lower bound")
    parser.add_argument("--state", type=Path, help="a file that keeps the figures")
    parser.add_argument("--readme", action="store_true", help="print the README's table instead")
    options = parser.parse_args()
    results = gather(
        options.lane or list(LANES), options.model or list(MODELS), options.toolchain or TOOLCHAINS, options.state
    )
    if options.readme:
        print(readme_table(results))
        return 0
    console, missed = Console(width=200), False
    for name in options.lane or LANES:
        missed |= print_lane(console, name, options.model or list(MODELS), results)
        if options.layers:
            print_layers(console, name, options.model or list(MODELS), results)
    print("every goal is met" if not missed else "a goal is missed, or an output differs")
    return int(missed)


def gather(lanes: Sequence[str], models: Sequence[str], toolchains: Sequence[str], state: Path | None) -> Results:
    """Return the figures of the file, and those that it lacks, which are measured and added to it."""
    folder = os.environ.get("FERRULE_MODELS")
    results: Results = json.loads(state.read_text(encoding="utf-8")) if state is not None and state.exists() else {}
    for lane in lanes:
        for model in models:
            for toolchain in toolchains:
                key = f"{lane} {model} {toolchain}"
                if key in results:
                    continue
                if not folder:
                    sys.exit("set FERRULE_MODELS to the folder of the MLPerf Tiny models")
                print(f"measuring {key}", file=sys.stderr)
                results[key] = measured(LANES[lane], Path(folder), model, toolchain)
                if state is not None:
                    state.parent.mkdir(parents=True, exist_ok=True)
                    state.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return results


def measured(lane: Lane, folder: Path, model: str, toolchain: str) -> dict[str, Any]:
    """Build and run one firmware."""
    firmware = build(folder, model, lane.board, toolchain, lane.goal)
    found = dataclasses.asdict(measure(firmware))
    if lane.cycles and toolchain == TOOLCHAINS[0]:
        estimate = cycles.estimate(firmware)
        found["cycles"] = [estimate.low, estimate.high]
    return found


def figures_of(results: Results, lane: str, model: str, toolchain: str) -> Figures | None:
    """Return the figures if they were measured."""
    found = results.get(f"{lane} {model} {toolchain}")
    if found is None:
        return None
    plain = {name: value for name, value in found.items() if name not in {"cycles", "layers"}}
    return Figures(layers=tuple(Layer(**layer) for layer in found["layers"]), **plain)


def print_lane(console: Console, name: str, models: Sequence[str], results: Results) -> bool:
    """Print a lane's table; return whether a goal is missed."""
    lane, peers = LANES[name], _toml("peers.toml")
    table = Table(title=f"{lane.title} ({lane.board}), int8: gcc / zig")
    table.add_column("model")
    for heading in ("instructions", "goal", "of CMSIS-NN", "estimated cycles", "peers' cycles", "activations, B"):
        table.add_column(heading, justify="right")
    for heading in ("RAM, B", "of CMSIS-NN", "flash, B", "of CMSIS-NN"):
        table.add_column(heading, justify="right")
    missed = False
    for model in models:
        pair = [figures_of(results, name, model, toolchain) for toolchain in TOOLCHAINS]
        if not any(pair):
            continue
        cells = [
            *_speed_cells(lane, model, peers[MODELS[model]], pair, results.get(f"{name} {model} {TOOLCHAINS[0]}", {})),
            *_size_cells(lane, model, peers[MODELS[model]], pair),
        ]
        if name == "m4-memory":
            cells[1] = _memory_goal(model, pair, results)
        missed |= any("missed" in cell for cell in cells) or not all(each.exact for each in pair if each is not None)
        different = "" if all(each.exact for each in pair if each is not None) else " DIFFERENT"
        table.add_row(model + different, *cells)
    console.print(table)
    return missed


Pair = Sequence[Figures | None]


def _speed_cells(lane: Lane, model: str, peer: Mapping[str, Any], pair: Pair, found: Mapping[str, Any]) -> list[str]:
    counts = [each.instructions for each in pair if each is not None]
    goal, close = "", ""
    if lane.instructions is not None:
        most = lane.instructions[model]
        goal = f"{most:,.0f} {_met(max(counts) <= most)}"
    most_difference = MOST_DIFFERENCE_WITHOUT_ASSEMBLER if lane.core == "m0plus" else MOST_DIFFERENCE
    if len(counts) > 1 and (max(counts) - min(counts)) > most_difference * min(counts):
        close = f"\ndiffer by {max(counts) / min(counts) - 1:.1%}: missed"
    fast = _fast_peer(lane, peer)
    share = _each(
        None if fast is None else each.instructions / fast["instructions"] for each in pair if each is not None
    )
    estimate = found.get("cycles")
    said = ""
    if estimate is not None:
        said = f"{estimate[0]:,} to {estimate[1]:,}"
        if lane.most_cycles is not None:
            said += f"\ngoal {lane.most_cycles[model]:,.0f} {_met(estimate[1] <= lane.most_cycles[model])}"
    return [_each(counts) + close, goal, share, said, _peer_cycles(lane, peer)]


def _size_cells(lane: Lane, model: str, peer: Mapping[str, Any], pair: Pair) -> list[str]:
    known = [each for each in pair if each is not None]
    activations = _each(dict.fromkeys(each.activations for each in known))
    if lane.activations is not None:
        most = lane.activations[model]
        activations += f"\ngoal {most:,} {_met(all(each.activations <= most for each in known))}"
    fast = _fast_peer(lane, peer)
    cells = [activations]
    for values, name, goals in (
        ([each.ram for each in known], "ram", RAM_SHARE),
        ([each.flash for each in known], "flash", FLASH_SHARE),
    ):
        shares = "" if fast is None else _each(value / fast[name] for value in values)
        if fast is not None and (lane.core, lane.goal) == ("m4", "balanced"):
            shares += f"\ngoal {goals[model]} {_met(max(values) / fast[name] <= goals[model])}"
        cells += [_each(values), shares]
    return cells


def _memory_goal(model: str, pair: Pair, results: Results) -> str:
    """Return whether the goal `memory` costs at most so many more instructions."""
    balanced = [figures_of(results, "m4", model, toolchain) for toolchain in TOOLCHAINS]
    factors = [
        one.instructions / other.instructions
        for one, other in zip(pair, balanced, strict=True)
        if one is not None and other is not None
    ]
    if not factors:
        return ""
    return (
        f"{max(factors):.2f} of balanced, goal {MOST_FOR_MEMORY[model]} {_met(max(factors) <= MOST_FOR_MEMORY[model])}"
    )


def _fast_peer(lane: Lane, peer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = peer.get({"m4": "cmsis_nn", "m55": "m55"}.get(lane.core, ""))
    return found


def _peer_cycles(lane: Lane, peer: Mapping[str, Any]) -> str:
    if lane.core == "m55":
        low, high = peer["m55"]["cycles"]
        return f"{low:,} to {high:,}"
    record = peer["records"].get(lane.core)
    return "" if record is None else f"record {record * 1e6:,.0f}"


def _each(values: Any) -> str:  # noqa: ANN401 - numbers of either kind, or None
    said = [f"{value:.2f}" if isinstance(value, float) else f"{value:,}" for value in values if value is not None]
    return " / ".join(said)


def _met(met: bool) -> str:
    return "met" if met else "missed"


def print_layers(console: Console, name: str, models: Sequence[str], results: Results) -> None:
    """Print each layer of gcc's firmware beside its lower bound, the farthest marked."""
    lane = LANES[name]
    for model in models:
        figures = figures_of(results, name, model, TOOLCHAINS[0])
        if figures is None:
            continue
        table = Table(title=f"{model} on {lane.title}: layers of gcc's firmware")
        for heading in ("layer", "type", "kernel", "instructions", "lower bound", "ratio", ""):
            table.add_column(
                heading, justify="right" if heading in {"instructions", "lower bound", "ratio"} else "left"
            )
        for layer in figures.layers:
            bound = layer.bound
            ratio = None if bound is None else layer.instructions / bound
            table.add_row(
                layer.name,
                layer.type,
                layer.kernel,
                f"{layer.instructions:,}",
                "" if bound is None else f"{bound:,}",
                "" if ratio is None else f"{ratio:.2f}",
                f"above {FAR_FROM_BOUND}" if ratio is not None and ratio > FAR_FROM_BOUND else "",
            )
        console.print(table)


def readme_table(results: Results) -> str:
    """Return the README's table, with zig's figures, since zig is the default."""
    peers, toolchain = _toml("peers.toml"), TOOLCHAINS[1]
    lines = [
        "| model (MLPerf Tiny, int8) | M4 | M4, `speed` | TFLM + CMSIS-NN, M4 | M55 | TFLM + CMSIS-NN, M55 | M3 | M0+ "
        "| RAM, M4 / CMSIS-NN | flash, M4 / CMSIS-NN |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for model, file in MODELS.items():
        of = {name: figures_of(results, name, model, toolchain) for name in LANES}
        fast, m55, size = peers[file]["cmsis_nn"], peers[file]["m55"], of["m4"]
        cells = [
            f"{model}, {file}",
            *(_millions(of[name]) for name in ("m4", "m4-speed")),
            f"{fast['instructions'] / 1e6:.2f} M",
            _millions(of["m55"]),
            f"{m55['instructions'] / 1e6:.2f} M",
            *(_millions(of[name]) for name in ("m3", "m0plus")),
            "" if size is None else f"{size.ram:,} / {fast['ram']:,} B",
            "" if size is None else f"{size.flash:,} / {fast['flash']:,} B",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _millions(figures: Figures | None) -> str:
    return "" if figures is None else f"{figures.instructions / 1e6:.2f} M"


def _toml(name: str) -> Mapping[str, Any]:
    return tomllib.loads((ROOT / name).read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main())
