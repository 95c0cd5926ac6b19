# SPDX-License-Identifier: Apache-2.0
"""Compares the cycle models with published cycles of chips, figure by figure; docs/timing.md explains the figures.

The programs are ELF files in a folder of yours, `FOLDER/<core>/<program>.elf`. Each calls what was measured as its
publication did, writes the cycles, by CYCCNT or SysTick, to the variable `measured_cycles`, and exits by semihosting;
`measured_wrong`, if there is one, is not 0 where the result was wrong. The embedded engine has no Cortex-M55: its
programs make the call in a function `measured`, for whose last run the low estimate of cycles.py is taken. The programs
are not part of Ferrule: docs/timing.md names the sources of each. A figure whose program is missing keeps what is
stored.

Usage: python benchmarks/timing_evidence.py FOLDER [--core cortex-m4] [--update]

--update writes the model's cycles to sdk/ferrule/timing/evidence and the tables to docs/timing.md. Without programs
(no FOLDER), the stored cycles are printed.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import cycles

from ferrule.boards import load_board
from ferrule.emulation import Clock, EngineOptions, Machine, engine
from ferrule.emulation.crash import ExitError
from ferrule.firmware import read_image
from ferrule.timing.evidence import FOLDER, Figure, Use, error_of, evidence

PAGE = Path(__file__).parents[1] / "docs" / "timing.md"
LONGEST_S = 600.0
"""Limit of a program, in seconds of its board's clock."""
HEADING = "| figure | published | model | error | use | source |\n|---|---:|---:|---:|---|---|"


def measured(figure: Figure, elf: Path) -> float:
    """Run a program on the model; return the cycles of a unit of its figure."""
    board = replace(load_board(figure.board), timing=figure.timing)
    if figure.core == "cortex-m55":
        return round(cycles.estimate_function(board, elf, "measured").low / figure.per, 2)
    machine = Machine(board=board, elf=elf, clock=Clock.CYCLES, options=EngineOptions(semihosting=True))
    image = read_image(elf)
    with engine("unicorn").start(machine) as session:
        try:
            session.channel("console").read(1, LONGEST_S)
        except ExitError as end:
            if end.status:
                raise SystemExit(f"{elf}: it ended with status {end.status}") from end
        else:
            raise SystemExit(f"{elf}: it did not end in {LONGEST_S:.0f} s of the board's clock")
        memory = session.memory()
        assert memory is not None, "unicorn reaches the memory"

        def word(name: str) -> int:
            return int.from_bytes(memory.read(image.address_of(name), 4), "little")

        if any(symbol.name == "measured_wrong" for symbol in image.symbols) and word("measured_wrong"):
            raise SystemExit(f"{elf}: its result is wrong")
        return round(word("measured_cycles") / figure.per, 2)


def compared(figures: Iterable[Figure], folder: Path | None) -> list[Figure]:
    """Return figures with the model's cycles of those whose programs there are."""
    found = []
    for figure in figures:
        elf = Path() if folder is None else folder / figure.core / f"{figure.program}.elf"
        found.append(replace(figure, model=measured(figure, elf)) if elf.is_file() else figure)
    return found


def number(value: float | None) -> str:
    """Return cycles as text."""
    return "-" if value is None else f"{value:,.2f}".rstrip("0").rstrip(".")


def percent(value: float) -> str:
    """Return an error as text."""
    return f"{100 * value:+.1f} %"


def table(figures: Iterable[Figure], sources: Mapping[str, int]) -> str:
    """Return figures as a table of the page; `sources` are the numbers of sources by title and revision."""
    rows = [
        f"| {each.name} | {number(each.published)} | {number(each.model)} "
        f"| {'-' if each.error is None else percent(each.error)} | {each.use} | {sources[key(each)]} |"
        for each in figures
    ]
    return "\n".join([HEADING, *rows])


def key(figure: Figure) -> str:
    """Return what tells a figure's source from others."""
    source = figure.source
    return f"{source.title} {source.url} {source.file} {source.board}"


def errors(known: Mapping[str, Iterable[Figure]]) -> str:
    """Return the errors of cores, without and with wait states, as a table of the page."""
    rows = []
    for core, figures in known.items():
        listed_figures = list(figures)
        for waits in (False, True):
            chosen = [each for each in listed_figures if (each.timing is not None) == waits]
            held = [each for each in chosen if each.use is Use.HELD_OUT and each.error is not None]
            found = error_of(chosen)
            text = "no measured error | | |"
            if found is not None:
                text = f"{percent(found.low)} | {percent(found.high)} | {100 * found.median:.1f} % |"
            if chosen:
                sources = len({each.source.url for each in held})
                rows.append(f"| {core} | {'yes' if waits else 'none'} | {len(held)} | {sources} | {text}")
    heading = "| core | wait states | held out | publications | least | most | median of either sign |"
    return "\n".join([heading, "|---|---|---:|---:|---:|---:|---:|", *rows])


def listed(known: Mapping[str, Iterable[Figure]]) -> str:
    """Return the errors, tables and sources of all cores, as the page has them."""
    sources: dict[str, int] = {}
    first: dict[int, Figure] = {}
    for figures in known.values():
        for figure in figures:
            first.setdefault(sources.setdefault(key(figure), len(sources) + 1), figure)
    parts = [errors(known)]
    for core, figures in known.items():
        parts += [f"### {core}", table(figures, sources)]
    rows = [
        f"| {index} | [{each.source.title}]({each.source.url}), {each.source.revision} | {each.source.file} "
        f"| {each.source.board} | {'-' if each.source.clock_hz is None else f'{each.source.clock_hz / 1e6:g} MHz'} "
        f"| {each.source.compiler} |"
        for index, each in first.items()
    ]
    heading = "| | publication, revision | place | board | clock | compiler |\n|---:|---|---|---|---|---|"
    notes = sorted({(each.core, each.name, each.note) for figures in known.values() for each in figures if each.note})
    by_note: dict[tuple[str, str], list[str]] = {}
    for core, name, note in notes:
        by_note.setdefault((note, core), []).append(name)
    remarks = [f"| {core} | {'; '.join(names)} | {note} |" for (note, core), names in by_note.items()]
    parts += ["### Sources", "\n".join([heading, *rows])]
    parts += ["### Remarks", "\n".join(["| core | figures | remark |\n|---|---|---|", *remarks])]
    return "\n\n".join(parts) + "\n"


def with_models(text: str, figures: Iterable[Figure]) -> str:
    """Return the text of a core's file with the model's cycles of these figures."""
    blocks = text.split("[[figures]]\n")
    known = list(figures)
    assert len(blocks) == len(known) + 1, "the figures are in the order of the file"
    for index, figure in enumerate(known, start=1):
        body = re.sub(r"^model = .*\n", "", blocks[index], flags=re.MULTILINE)
        if figure.model is not None:
            line = f"model = {int(figure.model) if figure.model == int(figure.model) else figure.model:_}\n"
            body = re.sub(r"^(use = .*\n)", rf"{line}\1", body, count=1, flags=re.MULTILINE)
        blocks[index] = body
    return "[[figures]]\n".join(blocks)


def update(known: Mapping[str, list[Figure]]) -> None:
    """Write the model's cycles to the cores' files, and the tables to the page."""
    for core, figures in known.items():
        path = FOLDER / f"{core}.toml"
        path.write_text(with_models(path.read_text(encoding="utf-8"), figures), encoding="utf-8")
    start, _, _ = PAGE.read_text(encoding="utf-8").partition("### Errors\n")
    PAGE.write_text(f"{start}### Errors\n\n{listed(known)}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", help="the folder of the programs")
    parser.add_argument("--core", choices=sorted(evidence()), help="only this core")
    parser.add_argument("--update", action="store_true", help="write the model's cycles and the page")
    options = parser.parse_args()
    if options.folder is not None and not options.folder.is_dir():
        parser.error(f"{options.folder} is no folder")
    known = {
        core: compared(figures, options.folder) if options.core in (None, core) else list(figures)
        for core, figures in evidence().items()
    }
    for core, figures in known.items():
        if options.core in (None, core):
            for each in figures:
                error = "-" if each.error is None else percent(each.error)
                mark = {Use.HELD_OUT: "", Use.FITTED: " (fitted)", Use.CONTEXT: " (context)"}[each.use]
                print(
                    f"{core} {each.name}: published {number(each.published)}, model {number(each.model)}, {error}{mark}"
                )
    print(errors(known))
    if options.update:
        update(known)


if __name__ == "__main__":
    main()
