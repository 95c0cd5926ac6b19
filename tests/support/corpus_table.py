# SPDX-License-Identifier: Apache-2.0
"""The committed table of the corpus, tests/corpus.toml, and the comparison with new figures and with CMSIS-NN's."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus_picture import picture
from corpus_shapes import KINDS, corpus

import ferrule
from ferrule import override

TABLE = Path(__file__).resolve().parents[1] / "corpus.toml"
PICTURE = Path(__file__).resolve().parents[2] / "docs" / "pictures" / "corpus.svg"
MOST = 0.6
"""Of CMSIS-NN's instructions that a shape may take."""
RISE = 0.01
CORES = {"m4": "mps2-an386", "m55": "mps3-an547"}
"""The boards by core."""
TOOLCHAINS = ("arm-none-eabi-gcc", "zig")
_HEADER = """\
# SPDX-License-Identifier: Apache-2.0
# Exact instructions of the corpus's shapes (of a Cortex-M55: within 40), for the goal `speed`; see tests/corpus.py.
# [work] is what they are divided by: multiply-accumulates, or else elements of the output. [cmsis-nn] is revision
# 99f736a6, built by arm-none-eabi-gcc -O2 and counted by the same emulators. [above] are the shapes for which neither
# toolchain's firmware takes at most 0.6 times its instructions, with the reason.
"""

Table = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The shapes that one firmware runs."""

    core: str
    kind: str
    toolchain: str

    @property
    def prefix(self) -> str:
        """The start of its rows' names."""
        return f"{self.core} {self.kind}"

    @override
    def __str__(self) -> str:
        return f"{self.prefix} {self.toolchain}"


GROUPS = tuple(
    Group(core=core, kind=kind, toolchain=toolchain) for core in CORES for kind in KINDS for toolchain in TOOLCHAINS
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The figures of a shape."""

    kernel: str
    instructions: int
    work: int
    """Its multiply-accumulates, or else the elements of its output."""


def measured(group: Group, words: Sequence[str] = ()) -> dict[str, Shape]:
    """Build and run the shapes of a group whose names contain one of the words; return their figures by name."""
    network = corpus(group.kind, words)
    firmware = ferrule.compile(network, board=CORES[group.core], toolchain=group.toolchain, goal="speed")
    report = firmware.run(engine="qemu" if group.core == "m55" else "unicorn")
    assert report.verdict.agrees, f"{group}: the outputs differ from the reference"
    elements = {tensor.info.name: tensor.info.elements for tensor in network.tensors}
    return {
        layer.name: Shape(kernel=layer.kernel, instructions=layer.count, work=layer.macs or elements[layer.outputs[0]])
        for layer in report.layers
        if not layer.name.endswith("_pre")
    }


def read(path: Path = TABLE) -> Table:
    """Return the committed table."""
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(table: Table, path: Path = TABLE) -> None:
    """Write the table, sorted."""
    lines = [_HEADER.rstrip("\n")]
    for title in ("above", "cmsis-nn", *TOOLCHAINS, "work"):
        lines += ["", f"[{title}]"]
        for name, value in sorted(table.get(title, {}).items()):
            shown = f'"{value}"' if isinstance(value, str) else str(value)
            lines.append(f'"{name}" = {shown}')
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def ratios(table: Table) -> dict[str, float]:
    """Return, for each row that CMSIS-NN has, the instructions of the better toolchain as a multiple of its."""
    return {
        name: min(table[toolchain][name] for toolchain in TOOLCHAINS) / peer
        for name, peer in table["cmsis-nn"].items()
        if all(name in table.get(toolchain, {}) for toolchain in TOOLCHAINS)
    }


def above(table: Table) -> set[str]:
    """Return the rows that take more than `MOST` of CMSIS-NN's instructions."""
    return {name for name, ratio in ratios(table).items() if ratio > MOST}


def lines(group: Group, found: Mapping[str, Shape], table: Table) -> Iterator[str]:
    """Yield a line for each shape: its figures beside the committed one and CMSIS-NN's."""
    known, peers = table.get(group.toolchain, {}), table.get("cmsis-nn", {})
    for name, shape in found.items():
        row = f"{group.prefix} {name}"
        change = f"{shape.instructions / known[row] - 1:+.1%}" if row in known else "new"
        peer = f"{shape.instructions / peers[row]:.2f} of CMSIS-NN" if row in peers else ""
        each = shape.instructions / shape.work
        yield f"{row:32}{shape.kernel:36}{shape.instructions:>11,}{each:>8.2f}{change:>9}  {peer}".rstrip()


def main(description: str, arguments: Sequence[str] | None = None) -> int:
    """Measure groups, compare them with the table, and write it if asked."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD", help="only groups with all of these words, such as m4 int8")
    parser.add_argument("--shape", action="append", default=[], help="only shapes whose names contain this")
    parser.add_argument("--update", action="store_true", help="write the figures into the table")
    parser.add_argument("--picture", action="store_true", help="draw docs/pictures/corpus.svg of the table, and end")
    parser.add_argument("--table", type=Path, default=TABLE)
    options = parser.parse_args(arguments)
    table, risen = read(options.table), 0
    if options.picture:
        PICTURE.write_text(picture(ratios(table), MOST), encoding="utf-8")
        return 0
    for group in GROUPS:
        if not set(options.words) <= set(str(group).split()):
            continue
        found = measured(group, options.shape)
        print(*lines(group, found, table), sep="\n", flush=True)
        known = table.setdefault(group.toolchain, {})
        for name, shape in found.items():
            row = f"{group.prefix} {name}"
            risen += row in known and shape.instructions > (1 + RISE) * known[row]
            if options.update:
                known[row] = shape.instructions
                table.setdefault("work", {})[row] = shape.work
        if options.update:
            write(table, options.table)
    unknown = sorted(above(table) ^ (table.get("above", {}).keys() & ratios(table).keys()))
    print(*(f"{name}: {ratios(table)[name]:.2f} of CMSIS-NN, against [above]" for name in unknown), sep="\n")
    return int((risen > 0 and not options.update) or bool(unknown))
