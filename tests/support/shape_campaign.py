# SPDX-License-Identifier: Apache-2.0
"""Random shapes on an emulated board: many networks of one layer in each firmware, compared bit by bit.

Integers are compared with numpy; floats with the firmware's own C on this machine, and that with numpy's bounds.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from amounts import amount
from merged import merged
from shape_cases import TYPES, Case, draw

import ferrule
from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernels import choice
from ferrule.backends.firmware import LoweringContext
from ferrule.backends.target import Goal
from ferrule.boards import load_board
from ferrule.errors import FerruleError
from ferrule.graph import Array, DataType, LayerType
from ferrule.network import Network
from ferrule.operators.activation import Activation
from ferrule.running.own_code import OwnCode, has_floats

_MOST_STEPS = 12
"""Times that a failing case is made smaller."""
_MOST_CANDIDATES = 40
"""Smaller cases that one step tries, together in one firmware."""
_STACK_BYTES = 16_384
"""More than any kernel needs, so that no firmware is built a second time to fit its stack."""
ANY = "any"
"""In place of a goal or of a toolchain: each batch draws its own."""
_TOOLCHAINS = ("zig", "arm-none-eabi-gcc")


@frozen
class Setting:
    """The board and the compiler of a campaign."""

    board: str = "mps2-an386"
    toolchain: str = "arm-none-eabi-gcc"
    goal: str = "balanced"
    engine: str = ""
    """Empty for the fastest engine that can run the board."""

    def drawn(self, numbers: random.Random) -> Setting:
        """Return the setting with a drawn goal and toolchain where it has ANY."""
        goal, toolchain = numbers.choice(list(Goal)), numbers.choice(_TOOLCHAINS)
        return replace(
            self,
            goal=goal.value if self.goal == ANY else self.goal,
            toolchain=toolchain if self.toolchain == ANY else self.toolchain,
        )

    def run(self, network: Network, inputs: Sequence[Array]) -> Ran:
        """Run a network on the board."""
        board = load_board(self.board)
        placement = replace(board.placement, stack_bytes=_STACK_BYTES, stack_is_stated=True)
        board = replace(board, placement=placement)
        firmware = ferrule.compile(network, board=board, toolchain=self.toolchain, goal=self.goal)
        engine = self.engine or ("qemu" if "an547" in self.board else "unicorn")
        outputs = firmware.run(inputs, engine=engine).outputs
        own = (
            OwnCode(firmware.optimized, firmware.job.backend_source(), network=network) if has_floats(network) else None
        )
        return Ran(
            outputs=outputs,
            kernels={record.layer: record.kernel for record in firmware.artifact.operators},
            own=own,
        )


@frozen(eq=False)
class Ran:
    """A network that a board has run."""

    outputs: list[Array]
    kernels: Mapping[str, str]
    """The kernel of each layer's operator."""
    own: OwnCode | None = None
    """The firmware's C on this machine, if the network has floats."""


@frozen
class Difference:
    """A case with a wrong output, or one that could not be run."""

    case: Case
    setting: Setting
    turn: int
    kernel: str
    what: str


@dataclass(slots=True, kw_only=True)
class Turns:
    """Which row is taken where an operator has several: in turn t the t-th of the candidates, not the best one."""

    turn: int
    """-1 for the choice of the goal."""
    candidates: dict[str, int] = field(default_factory=dict)
    """The number of candidates by layer, for layers with rows."""

    def take(self, name: str, found: Sequence[choice.Considered]) -> tuple[choice.Considered, ...]:
        """Return the rows with another one chosen."""
        able = [number for number, each in enumerate(found) if each.candidate is not None]
        self.candidates[name] = max(len(able), self.candidates.get(name, 0))
        if self.turn < 0 or not able:
            return tuple(found)
        chosen = able[self.turn % len(able)]
        return tuple(
            replace(each, stated=replace(each.stated, chosen=number == chosen)) for number, each in enumerate(found)
        )


@contextmanager
def taking(turns: Turns) -> Iterator[None]:
    """Let lowerings take the rows of a turn."""
    explain: Callable[..., tuple[choice.Considered, ...]] = choice.explain

    def instead(context: LoweringContext, rows: Sequence[choice.Row]) -> tuple[choice.Considered, ...]:
        return turns.take(context.layer.name, explain(context, rows))

    choice.explain = instead
    try:
        yield
    finally:
        choice.explain = explain


@dataclass(slots=True, kw_only=True)
class Outcome:
    """The result of some cases in one turn."""

    differences: list[Difference]
    kernels: Counter[str]
    several: list[Case]
    """The cases with a candidate for the next turn."""


def check(cases: Sequence[Case], setting: Setting, turn: int) -> Outcome:
    """Run cases in one firmware; if that is not possible, each half alone, down to the case that cannot be run."""
    networks = [case.network() for case in cases]
    inputs = [case.arrays(network) for case, network in zip(cases, networks, strict=True)]
    turns, together, given = Turns(turn=turn), merged(networks), [array for some in inputs for array in some]
    try:
        with taking(turns):
            ran = setting.run(together, given)
    except FerruleError as error:
        if len(cases) == 1:
            return Outcome(
                differences=[Difference(case=cases[0], setting=setting, turn=turn, kernel="?", what=f"{error}")],
                kernels=Counter(),
                several=[],
            )
        halves = [check(half, setting, turn) for half in (cases[: len(cases) // 2], cases[len(cases) // 2 :])]
        return Outcome(
            differences=[each for half in halves for each in half.differences],
            kernels=halves[0].kernels + halves[1].kernels,
            several=[case for half in halves for case in half.several],
        )
    own = ran.outputs if ran.own is None else ran.own.run(given, together.initial_state())
    outcome = Outcome(differences=[], kernels=Counter(), several=[])
    for number, (case, network, arrays, got) in enumerate(zip(cases, networks, inputs, ran.outputs, strict=True)):
        name = f"n{number}_layer"
        kernel = ran.kernels.get(name, "?")
        outcome.kernels[f"{case.dtype} {kernel}"] += 1
        wanted = own[number] if case.dtype is DataType.FLOAT32 else network.run(arrays)[0]
        what = _difference(got, wanted)
        if not what and ran.own is not None and ran.own.judged.first == name:
            what = "the C on this machine left numpy's bounds"
        if what:
            outcome.differences.append(Difference(case=case, setting=setting, turn=turn, kernel=kernel, what=what))
        if turn + 1 < turns.candidates.get(name, 1):
            outcome.several.append(case)
    return outcome


def check_all_turns(cases: Sequence[Case], setting: Setting, *, every: bool) -> Outcome:
    """Run cases with the kernel that the goal chooses, and with `every` also with each other candidate."""
    total = Outcome(differences=[], kernels=Counter(), several=[])
    turn, left = (0, list(cases)) if every else (-1, list(cases))
    while left:
        outcome = check(left, setting, turn)
        total.differences += outcome.differences
        total.kernels += outcome.kernels
        turn, left = turn + 1, outcome.several if every else []
    return total


def smallest(difference: Difference) -> Difference:
    """Return a smaller case that still differs: in each step the smallest among those with one number less."""
    for _ in range(_MOST_STEPS):
        candidates = sorted(filter(_valid, difference.case.smaller()), key=lambda case: case.size)[:_MOST_CANDIDATES]
        if not candidates:
            break
        found = check(candidates, difference.setting, difference.turn).differences
        if not found:
            break
        difference = min(found, key=lambda each: each.case.size)
    return difference


def _valid(case: Case) -> bool:
    try:
        case.network()
    except (FerruleError, ValueError):
        return False
    return True


def _difference(got: Array, wanted: Array) -> str:
    """Return how two arrays differ, "" if they do not; zeros have signs, and a NaN equals a NaN."""
    differs = got != wanted
    if wanted.dtype.kind == "f":
        differs = (differs | (np.signbit(got) != np.signbit(wanted))) & ~(np.isnan(got) & np.isnan(wanted))
    places = np.argwhere(differs)
    if not len(places):
        return ""
    first = tuple(int(each) for each in places[0])
    return f"{len(places)} of {got.size} values differ, first {first}: {got[first]}, expected {wanted[first]}"


@dataclass(slots=True, kw_only=True)
class Progress:
    """What a campaign has done, kept in a file so that it goes on where it stopped."""

    path: Path | None
    key: str
    done: int = 0
    kernels: Counter[str] = field(default_factory=Counter)

    def load(self) -> None:
        """Read the file if it is of the same campaign."""
        if self.path is not None and self.path.exists():
            document = json.loads(self.path.read_text(encoding="utf-8"))
            if document["key"] == self.key:
                self.done, self.kernels = document["done"], Counter(document["kernels"])

    def save(self) -> None:
        """Write the file."""
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            document = {"key": self.key, "done": self.done, "kernels": self.kernels}
            self.path.write_text(json.dumps(document) + "\n", encoding="utf-8")


def run_campaign(
    setting: Setting,
    *,
    seed: int,
    count: int,
    batch: int,
    progress: Progress,
    every: bool,
    types: Sequence[LayerType] = (),
) -> list[Difference]:
    """Run the cases that are not done, of `types` in turn if there are any; stop after a batch with a difference."""
    while progress.done < count:
        last = min(progress.done + batch, count)
        started = time.monotonic()
        cases = [
            draw(seed, index, types[index % len(types)] if types else None) for index in range(progress.done, last)
        ]
        drawn = setting.drawn(random.Random(f"{seed} {progress.done}"))
        outcome = check_all_turns(cases, drawn, every=every)
        if outcome.differences:
            return outcome.differences
        progress.kernels += outcome.kernels
        progress.done = last
        progress.save()
        took = f"{time.monotonic() - started:.1f} s"
        print(f"{last} of {count} shapes exact ({drawn.goal}, {drawn.toolchain}, {took})", flush=True)
    return []


def main(description: str) -> int:
    """Run a campaign as the command line says; return 1 if an output differs."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=amount, default=10_000, help="shapes")
    parser.add_argument("--each", type=amount, help="shapes of each layer type, in turn, in place of --count")
    parser.add_argument(
        "--types", nargs="+", choices=list(map(str, TYPES)), metavar="TYPE", help="the layer types that --each takes"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first shape")
    parser.add_argument("--board", default=Setting().board)
    parser.add_argument("--toolchain", default=Setting().toolchain, help="any: each batch draws it")
    parser.add_argument("--goal", default=Setting().goal, help="any: each batch draws it")
    parser.add_argument("--engine", default="", help="unicorn or qemu; the fastest that can run the board if not given")
    parser.add_argument("--batch", type=amount, default=100, help="shapes in one firmware")
    parser.add_argument(
        "--chosen", action="store_true", help="only the kernel that the goal chooses, not each that can"
    )
    parser.add_argument("--state", type=Path, help="file that keeps what is done; delete it after a change of kernels")
    parser.add_argument("--case", help="run one case, as a failure prints it")
    options = parser.parse_args()
    setting = Setting(board=options.board, toolchain=options.toolchain, goal=options.goal, engine=options.engine)
    every = not options.chosen
    if options.case:
        return _report(check_all_turns([parsed(options.case)], setting, every=every).differences, shrink=False)
    types = [each for each in TYPES if each in (options.types or TYPES)] if options.each else []
    key = f"{setting} {options.seed} {every} {' '.join(types)}"
    progress = Progress(path=options.state, key=key, done=options.first)
    progress.load()
    differences = run_campaign(
        setting,
        seed=options.seed,
        count=options.first + (options.each * len(types) if options.each else options.count),
        batch=options.batch,
        progress=progress,
        every=every,
        types=types,
    )
    for kernel, number in sorted(progress.kernels.items()):
        print(f"{number:7,} {kernel}")
    return _report(differences, shrink=True)


def parsed(text: str) -> Case:
    """Return the case that `Case.brief` wrote."""
    known = {each.__name__: each for each in (Case, LayerType, DataType, Activation)}
    case = eval(text, {"__builtins__": {}}, known)  # noqa: S307 - the argument of a developer's command
    if not isinstance(case, Case):
        sys.exit(f"--case is {text!r}, expected Case(...)")
    return case


def _report(differences: Sequence[Difference], *, shrink: bool) -> int:
    kernels: set[str] = set()
    for found in sorted(differences, key=lambda each: each.case.size):
        print(f"DIFFERENT: {found.kernel}: {found.what}\n    {found.case.brief}")
        if not shrink or found.kernel in kernels:
            continue
        kernels.add(found.kernel)
        least, setting = smallest(found), found.setting
        print(f"smallest:  {least.kernel} (turn {least.turn}): {least.what}")
        print(
            f"    python tests/shapes.py --board {setting.board} --toolchain {setting.toolchain} --goal {setting.goal}"
            f" --case '{least.case.brief}'",
            flush=True,
        )
    return int(bool(differences))
