# SPDX-License-Identifier: Apache-2.0
"""The committed table of exact figures of firmware, tests/figures.toml, and the comparison with new ones."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from firmware_figures import MODELS, PUBLIC, Figures, build, measure

from ferrule import override

TABLE = Path(__file__).resolve().parents[1] / "figures.toml"
RISE = 5
"""Thousandths by which no figure may rise."""
TOOLCHAINS = ("arm-none-eabi-gcc", "zig")
BOARDS = {
    "mps2-an386": ("speed", "balanced", "memory"),
    "mps2-an385": ("balanced",),
    "stm32g0b1": ("balanced",),
    "mps3-an547": ("balanced",),
}
"""The goals by board."""
METRICS = ("instructions", "flash", "ram")
TIMED = tuple(f"{model} {board}" for board in ("mps2-an386", "stm32g0b1") for model in ("kws", "ad"))
"""The models and boards that have a row of the goal `time`, built by zig, with cycles, too."""
PUBLIC_METRICS = (*METRICS, "macs", "flash_before")
"""Those of public models: multiply-accumulates, too, and the flash before kernels computed in blocks."""
_ALL = ("cycles", *PUBLIC_METRICS)
INT8_LIMIT, FLOAT_LIMIT = 1.5, 3.0
"""Instructions that a public model may take for each multiply-accumulate, in int8 and in float32."""
INT8_LEAST, FLOAT_LEAST = 10_000, 50_000
"""The multiply-accumulates from which a model has a limit: smaller ones mostly do other things."""
OWN_LIMITS = {"face_landmarks": 2.4, "keyword_scrambled": 2.2, "mnist_lstm": 2.2}
MEDIAN_LIMIT = 1.3
"""For the models of int8."""
FLASH_LIMIT = 1.05
"""Of the flash before, on average."""
_HEADER = """\
# SPDX-License-Identifier: Apache-2.0
# Exact figures of firmware: instructions of an inference (of a Cortex-M55: within 40), bytes of flash, and bytes of RAM
# without the stacks and the test link's buffers; by version of the toolchain. A test fails if one rises by 0.5 %.
# Cycles, of the goal `time`, are those of the core's and the board's model.
# Public models beside those of MLPerf Tiny have their multiply-accumulates, too, and the flash before kernels computed
# in blocks. Written by `python tests/figures.py --update`.
"""

Entry = Mapping[str, int]
Table = dict[str, dict[str, Entry]]
"""By toolchain with its version, and by row."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Row:
    """A firmware in the table."""

    model: str
    board: str
    goal: str
    toolchain: str

    @property
    def variable(self) -> str:
        """The environment variable of the folder with the model."""
        return "FERRULE_PUBLIC_MODELS" if self.model in PUBLIC else "FERRULE_MODELS"

    @property
    def folder(self) -> str:
        """The value of the variable, "" if it is not set."""
        return os.environ.get(self.variable, "")

    @property
    def name(self) -> str:
        """The row's name within its toolchain."""
        return f"{self.model} {self.board} {self.goal}"

    @override
    def __str__(self) -> str:
        return f"{self.name} {self.toolchain}"


ROWS = tuple(
    Row(model=model, board=board, goal=goal, toolchain=toolchain)
    for toolchain in TOOLCHAINS
    for board, goals in BOARDS.items()
    for goal in goals
    for model in MODELS
) + tuple(Row(model=model, board="mps2-an386", goal="speed", toolchain="arm-none-eabi-gcc") for model in PUBLIC)
ROWS += tuple(Row(model=model, board=board, goal="time", toolchain="zig") for model, board in map(str.split, TIMED))


def measured(row: Row, folder: Path) -> tuple[str, Figures]:
    """Build and run a row's firmware; return the toolchain with its version, and the figures."""
    firmware = build(folder, row.model, row.board, row.toolchain, row.goal)
    version = firmware.toolchain_version
    named = version if version.startswith(row.toolchain) else f"{row.toolchain} {version}"
    return named, measure(firmware)


def read(path: Path = TABLE) -> Table:
    """Return the committed table."""
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(table: Table, path: Path = TABLE) -> None:
    """Write the table, sorted."""
    lines = [_HEADER.rstrip("\n")]
    for version, rows in sorted(table.items()):
        lines += ["", f'["{version}"]']
        for name, entry in sorted(rows.items()):
            values = ", ".join(f"{metric} = {entry[metric]}" for metric in _ALL if metric in entry)
            lines.append(f'"{name}" = {{ {values} }}')
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def entry_of(row: Row, figures: Figures) -> dict[str, int]:
    """Return a row's entry, without what it was before."""
    metrics = PUBLIC_METRICS[:-1] if row.model in PUBLIC else METRICS
    found = {metric: getattr(figures, metric) for metric in metrics}
    return found if figures.cycles is None else {"cycles": figures.cycles, **found}


def above(rows: Mapping[str, Entry]) -> set[str]:
    """Return the public models among a toolchain's rows that take more than their limits."""
    return {model for model, each in _per_mac(rows).items() if each > _limit(model)}


def median(rows: Mapping[str, Entry]) -> float:
    """Return the median of the instructions for each multiply-accumulate of the models of int8 with a limit."""
    return statistics.median(each for model, each in _per_mac(rows).items() if not _is_float(model))


def growth(rows: Mapping[str, Entry]) -> float:
    """Return the average of the public models' flash as a multiple of that before."""
    return statistics.mean(each["flash"] / each["flash_before"] for each in rows.values() if "flash_before" in each)


def _per_mac(rows: Mapping[str, Entry]) -> Mapping[str, float]:
    """Return the instructions for each multiply-accumulate of the public models that have a limit."""
    public = {name.split()[0]: entry for name, entry in rows.items() if "macs" in entry}
    return {
        model: entry["instructions"] / entry["macs"]
        for model, entry in public.items()
        if entry["macs"] >= (FLOAT_LEAST if _is_float(model) else INT8_LEAST)
    }


def _limit(model: str) -> float:
    return FLOAT_LIMIT if _is_float(model) else OWN_LIMITS.get(model, INT8_LIMIT)


def _is_float(model: str) -> bool:
    return model.endswith("_f32")


def rises(row: Row, known: Entry, found: Entry) -> list[str]:
    """Return a line for each figure that has risen by half a percent or more."""
    return [
        f"{row}: {metric} rose from {known[metric]:,} to {found[metric]:,} ({found[metric] / known[metric] - 1:+.2%})"
        for metric in ("cycles", *METRICS)
        if metric in known and 1000 * (found[metric] - known[metric]) >= RISE * known[metric] > 0
    ]


def main(description: str, arguments: Sequence[str] | None = None) -> int:
    """Measure rows, compare them with the table, and write it if asked; return 1 after a rise that is not written."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD", help="only rows with all of these words, such as ic zig")
    parser.add_argument("--update", action="store_true", help="write the figures into the table")
    parser.add_argument("--table", type=Path, default=TABLE)
    options = parser.parse_args(arguments)
    chosen = [row for row in ROWS if set(options.words) <= set(str(row).split())]
    if not chosen:
        sys.exit(f"no row has all of the words {options.words}")
    chosen = [row for row in chosen if row.folder]
    if not chosen:
        sys.exit("set FERRULE_MODELS to the folder of the MLPerf Tiny models, FERRULE_PUBLIC_MODELS to that of others")
    table, risen = read(options.table), 0
    for row in chosen:
        version, figures = measured(row, Path(row.folder))
        if not figures.exact:
            sys.exit(f"{row}: the outputs differ from the reference")
        known, found = table.get(version, {}).get(row.name), entry_of(row, figures)
        risen += bool(known is not None and rises(row, known, found))
        print(f"{row}: {'; '.join(_changes(known, found))}", flush=True)
        if options.update:
            table.setdefault(version, {})[row.name] = {**(known or {}), **found}
            write(table, options.table)
    return int(risen > 0 and not options.update)


def _changes(known: Entry | None, found: Entry) -> list[str]:
    return [
        f"{metric} {found[metric]:,}" + ("" if known is None else f" ({found[metric] / known[metric] - 1:+.2%})")
        for metric in ("cycles", *METRICS)
        if metric in found
    ]
