# SPDX-License-Identifier: Apache-2.0
"""Milliseconds of an inference on each core with a model of its cycles, beside the best published ones.

    FERRULE_MODELS=... python benchmarks/milliseconds.py [--board B ...] [--goal speed] [--toolchain T] [--readme]

The embedded engine counts cycles; the error of each core is the one that docs/timing.md measures. The published results
are MLPerf Tiny's, as millions of cycles, in peers.toml: they were measured on chips with their own wait states and
caches, which the boards mps2-* do not have. The exit status is 1 if an output differs from the reference.
"""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from firmware_figures import MODELS, build

from ferrule.boards import Board
from ferrule.emulation import Clock
from ferrule.timing.energy import digits_text

BOARDS = {
    "stm32g0b1": ("M0+", "m0plus"),
    "mps2-an385": ("M3", "m3"),
    "nucleo_l4r5zi": ("M4", "m4"),
    "mps2-an505": ("M33", "m33"),
    "mps2-an500": ("M7", "m7"),
}
"""By board: the core, and its name in peers.toml."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """A model on a board."""

    model: str
    board: Board
    instructions: int
    cycles: int
    error: str
    """The measured error of the model of the core, or that there is none."""
    record: float | None
    """The best published result, in millions of cycles."""

    def milliseconds(self, cycles: float) -> float:
        """Return cycles as time at the board's clock."""
        return 1e3 * cycles / self.board.clock_hz

    @property
    def cell(self) -> str:
        """The time beside the published one, for a page."""
        own = digits_text(self.milliseconds(self.cycles))
        return own if self.record is None else f"{own} / {digits_text(self.milliseconds(1e6 * self.record))}"

    @property
    def text(self) -> str:
        """All that is known, on one line."""
        record = "nothing published" if self.record is None else f"{1e6 * self.record / self.cycles:.2f} times less"
        return (
            f"{self.model} on {self.board.name}: {self.instructions:,} instructions, {self.cycles:,} cycles "
            f"({self.cycles / self.instructions:.2f} each), {self.milliseconds(self.cycles):.2f} ms, {self.error}; "
            f"than the best published: {record}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--board", action="append", choices=BOARDS, help="all if not given")
    parser.add_argument("--goal", default="speed")
    parser.add_argument("--toolchain", default="arm-none-eabi-gcc", choices=("arm-none-eabi-gcc", "zig"))
    parser.add_argument("--readme", action="store_true", help="also print the README's table")
    options = parser.parse_args(arguments)
    folder = os.environ.get("FERRULE_MODELS")
    if folder is None:
        sys.exit("set FERRULE_MODELS to the folder of the MLPerf Tiny models")
    peers = tomllib.loads((Path(__file__).parent / "peers.toml").read_text(encoding="utf-8"))
    boards = options.board or list(BOARDS)
    rows: list[str] = []
    clocks: dict[str, int] = {}
    for model, file in MODELS.items():
        cells = []
        for name in boards:
            record = peers[file]["records"].get(BOARDS[name][1])
            found = timed(Path(folder), model, name, options.toolchain, options.goal, record)
            print(found.text, file=sys.stderr if options.readme else sys.stdout, flush=True)
            cells.append(found.cell)
            clocks[name] = found.board.clock_hz
        rows.append(f"| {model} | {' | '.join(cells)} |")
    if options.readme:
        titles = [f"{BOARDS[name][0]}, {clocks[name] / 1e6:g} MHz" for name in boards]
        print("\n".join([f"| model | {' | '.join(titles)} |", "|---" * (len(titles) + 1) + "|", *rows]))
    return 0


def timed(folder: Path, model: str, board: str, toolchain: str, goal: str, record: float | None) -> Timed:
    """Build a model's firmware, and run it with the clock `cycles`."""
    firmware = build(folder, model, board, toolchain, goal)
    report = firmware.run(engine="unicorn", clock=Clock.CYCLES)
    if report.verdict != "exact":
        sys.exit(f"{model} on {board}: the outputs differ from the reference's")
    part = report.duration
    assert part.elapsed is not None
    return Timed(
        model=model,
        board=firmware.board,
        instructions=firmware.run(engine="unicorn").count.per_inference,
        cycles=part.elapsed,
        error="no measured error" if part.error is None else part.error.text,
        record=record,
    )


if __name__ == "__main__":
    sys.exit(main())
