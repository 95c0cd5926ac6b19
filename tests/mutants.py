# SPDX-License-Identifier: Apache-2.0
"""Mutation testing: small faults are put into copies of the tree, one at a time, and the tests must notice them.

`make mutants SEED=1 NUMBER=100` draws mutants of the package's Python and C, and prints those that no test noticed. The
tests closest to the changed file run first; nightly tests run for NEON's sources only, which no other test executes.
With `--state FILE` a round that was interrupted goes on where it stopped. The exit status is 1 below a rate of 95 %.
`--conditions --own` asks more of each module: faults in decisions only, and its own tests alone must notice them.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import islice
from pathlib import Path

from amounts import amount
from children import ran
from mutant_notes import STARTED
from source_mutation import Mutant, sites

ROOT = Path(__file__).resolve().parents[1]
EQUIVALENT = ROOT / "tests" / "equivalent_mutants.toml"
"""The list of mutants that behave like the original: file, before, after (the changed line) and the reason."""
GOAL = 0.95
C_FOLDERS = ("src_c", "platforms", "sdk/ferrule/**/src", "sdk/ferrule/**/src_c")
TESTS = {
    "sdk/ferrule/backends/cpu_acc/lowering": ("tests/backends/cpu_acc", "tests/kernels", "tests/codegen"),
    "sdk/ferrule/dom": ("tests/codegen",),
    "src_c/mlperf_tiny": ("tests/firmware/test_mlperf_tiny.py",),
    "src_c/runtime": ("tests/link", "tests/emulation", "tests/firmware"),
    "sdk/ferrule/architectures/cortex_m/startup": ("tests/firmware", "tests/emulation"),
    "src_c/kernels": ("tests/kernels", "tests/backends/cpu_acc", "tests/testing/backends"),
    "sdk/ferrule/devices/rdl.py": ("tests/cli/test_registers.py",),
    "sdk/ferrule/devices": ("tests/devices", *(f"tests/emulation/test_device{part}.py" for part in ("", "_contracts"))),
    "sdk/ferrule/operators": ("tests/operators", "tests/testing/backends/test_layer_cases.py"),
}
"""Folders and files of tests for source folders whose tests are not, or not only, in a folder of the same name."""
C_CHECKS = (
    ("cc", "-std=c11"),
    ("arm-none-eabi-gcc", "-std=c11", "-mcpu=cortex-m4", "-mthumb", "-ffreestanding"),
)
C_INCLUDES = ("include", "src_c/**/include", "platforms/*/include", "platforms/cmsis/drivers", "sdk/ferrule/**/include")
C_FAKES = ("sdk/ferrule/testing/fakes/cmsis", "sdk/ferrule/testing/fakes/zephyr")
WARNINGS = ("-Wall", "-Wextra", "-Wno-unused-function", "-Wno-unused-macros", "-Werror", "-fsyntax-only")


def sources(root: Path) -> list[str]:
    """Return the files in which the tests must notice faults."""
    python = [path for path in root.glob("sdk/ferrule/**/*.py") if "tests" not in path.parts]
    c = {path for folder in C_FOLDERS for top in root.glob(folder) for path in top.rglob("*.[ch]")}
    return sorted(path.relative_to(root).as_posix() for path in (*python, *c))


@cache
def _imports(path: Path, root: Path) -> frozenset[str]:
    """Return the modules that a test imports, itself or by tests/support, and those that define the imported names."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
            if node.module.startswith("ferrule"):
                package = import_module(node.module)
                names.update(getattr(getattr(package, alias.name, None), "__module__", "") for alias in node.names)
    for name in sorted(names):
        support = root / "tests" / "support" / f"{name}.py"
        if support.is_file() and support != path:
            names |= _imports(support, root)
    return frozenset(names)


def tests_of(file: str, root: Path, *, own_only: bool) -> list[str]:
    """Return the test files that may notice a fault in a file, the closest first.

    With `own_only`: those of its name and the users of the module in the folder of its tests, or else that folder.
    """
    path = Path(file)
    folders = ("tests", "sdk/ferrule/backends", "examples")
    every = sorted(each for folder in folders for each in root.joinpath(folder).rglob("test_*.py"))
    parts = [part for part in path.parent.parts if part not in {"sdk", "ferrule", "src_c", "src", "include", "simd"}]
    mirrored = [root.joinpath("tests", *parts[:length]) for length in range(len(parts), 0, -1)]
    near = next((tests for place, tests in TESTS.items() if file.startswith(place)), ())
    places = [root / each for each in near] if near else [each for each in mirrored if any(each.glob("test_*.py"))][:1]
    places.insert(0, root.joinpath(*path.parts[:4], "tests"))
    close = [each for place in places for each in every if place in (each, *each.parents)]
    stem = re.sub(r"(\.inc)?\.[ch]$|\.py$|_(s8|s16|s32|f32)", "", path.name).strip("_")
    if path.suffix == ".py":
        module = ".".join(path.with_suffix("").parts[1:]).removesuffix(".__init__")
        users = [each for each in every if module in _imports(each, root)]
    else:
        users = [each for each in every if re.search(rf"\b{stem}\b", each.read_text(encoding="utf-8"))]
    far = sorted(users, key=lambda each: (not set(parts) & set(each.parts), each.stat().st_size))
    own = [each for each in close if stem in each.stem]
    own += [each for each in close or far if each in users and (close or each.parent == root / "tests")]
    ordered = (own or close) if own_only else (*own, *close, *far)
    return [each.relative_to(root).as_posix() for each in dict.fromkeys(ordered)]


def _unit(file: Path, root: Path, seen: frozenset[Path] = frozenset()) -> Path | None:
    """Return the C file itself, or for a header a C file that includes it; None if there is none."""
    if file.suffix == ".c":
        return file
    includes = re.compile(rf'#include ["<](?:[^">]*/)?{re.escape(file.name)}[">]')
    for other in sources(root):
        path = root / other
        if not other.endswith(".py") and path not in seen and includes.search(path.read_text(encoding="utf-8")):
            unit = _unit(path, root, seen | {file})
            if unit is not None:
                return unit
    return None


def _compiles(file: str, root: Path, checks: Sequence[Sequence[str]]) -> Sequence[str] | None:
    """Return the first compiler check that the C file passes; None if it passes none."""
    unit = _unit(root / file, root)
    places = [path for pattern in C_INCLUDES for path in sorted(root.glob(pattern))]
    unicorn = Path(sys.prefix).glob("lib/python*/site-packages/unicorn/include")
    includes = [f"-I{path}" for path in (*places, *(root / fake for fake in C_FAKES), *unicorn)]
    for check in checks:
        argv = [*check, *WARNINGS, *includes, str(unit)]
        if unit is not None and shutil.which(check[0]) and not _quiet(argv, root):
            return check
    return None


def _quiet(argv: Sequence[str], folder: Path) -> int:
    return subprocess.run(argv, cwd=folder, capture_output=True, check=False, timeout=300).returncode


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of a test run."""

    verdict: str
    """passed, failed, hung or out of time."""
    test: str
    """The last test that started; empty if none did."""


class Copy:
    """A copy of the tree, which holds one mutant at a time."""

    def __init__(self, folder: Path, test_limit_s: float, limit_s: float) -> None:
        self.root = folder / "tree"
        self._started = folder / "started"
        self._limits = test_limit_s, limit_s
        self._log = folder / "log"
        listed = ran(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
        )
        for name in listed.stdout.splitlines():
            if (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.root / name)

    def run(self, *arguments: str) -> Ran:
        """Run pytest on this copy until the first failure."""
        self._started.write_text("", encoding="utf-8")
        paths = (str(self.root / "sdk"), str(self.root / "tests" / "support"))
        environment = {
            **os.environ,
            STARTED: str(self._started),
            "PYTHONPATH": os.pathsep.join(paths),
            # A mutant can have the size and, in seconds, the time of the source of a module that was compiled before.
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        environment.setdefault("FERRULE_CACHE", str(self.root.parent.parent / "cache"))
        argv = [sys.executable, "-P", "-m", "pytest", "-p", "mutant_notes"]
        with self._log.open("w") as log:
            child = subprocess.Popen(
                [*argv, "-x", "-q", "-p", "no:cacheprovider", *arguments],
                cwd=self.root,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                verdict = self._watched(child)
            finally:
                with contextlib.suppress(ProcessLookupError):  # all of its processes have ended already
                    os.killpg(child.pid, signal.SIGKILL)
                self._end_others()
                child.wait()
        return Ran(verdict, self._started.read_text(encoding="utf-8"))

    def _end_others(self) -> None:
        """Kill the processes of the run that are in sessions of their own, on Linux."""
        marker = f"{STARTED}={self._started}\0".encode()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended, or belongs to another user
                if marker in process.joinpath("environ").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)

    def _watched(self, child: subprocess.Popen[bytes]) -> str:
        test_limit_s, limit_s = self._limits
        begin = time.time()
        while True:
            try:
                return {0: "passed", 5: "passed"}.get(child.wait(0.2), "failed")
            except subprocess.TimeoutExpired:
                now = time.time()
            if now - self._started.stat().st_mtime > test_limit_s:
                return "hung"
            if now - begin > limit_s:
                return "out of time"


class Round:
    """A round of mutants, run in as many copies of the tree as there are jobs."""

    def __init__(self, folder: Path, arguments: argparse.Namespace) -> None:
        self._copies: queue.Queue[Copy] = queue.Queue()
        for index in range(arguments.jobs):
            self._copies.put(Copy(folder / str(index), arguments.test_limit, arguments.limit))
        self._sound: dict[str, bool] = {}
        self._own_only: bool = arguments.own
        self._state: Path | None = arguments.state
        self._earlier = _read_state(arguments.state)
        self.unsound: list[str] = []
        """Tests that fail or hang even without a fault; they decide no mutant."""
        self.results: list[tuple[str, Mutant, str]] = []

    def decide(self, mutant: Mutant) -> str:
        """Return killed, hung, survived, undecided or discarded."""
        number, before, after = mutant.lines((ROOT / mutant.file).read_text(encoding="utf-8"))
        key = f"{mutant.file}:{number}: {before}  ->  {after}"
        verdict, test = self._earlier.get(key) or self._decided(mutant)
        self.results.append((verdict, mutant, test))
        if self._state is not None and key not in self._earlier:
            with self._state.open("a", encoding="utf-8") as file:
                file.write(json.dumps([key, verdict, test]) + "\n")
        print(f"{verdict:9} {key}  [{test}]", flush=True)
        return verdict

    def _decided(self, mutant: Mutant) -> tuple[str, str]:
        copy = self._copies.get()
        try:
            return self._decide(copy, mutant)
        finally:
            self._copies.put(copy)

    def _decide(self, copy: Copy, mutant: Mutant) -> tuple[str, str]:
        tests = tests_of(mutant.file, ROOT, own_only=self._own_only)
        path = copy.root / mutant.file
        text = path.read_text(encoding="utf-8")
        check = None if mutant.file.endswith(".py") else _compiles(mutant.file, copy.root, C_CHECKS)
        path.write_text(mutant.applied(text), encoding="utf-8")
        try:
            if check is not None and _compiles(mutant.file, copy.root, [check]) is None:
                return "discarded", "it does not compile"
            ran = self._run(copy, tests, nightly="neon" in mutant.file)
        finally:
            shutil.copy2(ROOT / mutant.file, path)
        if ran.verdict in {"passed", "out of time"}:
            return "survived", f"{ran.verdict}, {len(tests)} files"
        if not self._is_sound(copy, ran.test, tests):
            if not ran.test:
                return "undecided", "collection fails without the fault, too"
            self.unsound.append(ran.test)
            return self._decide(copy, mutant)
        return ("hung" if ran.verdict == "hung" else "killed"), ran.test or "collection"

    def _run(self, copy: Copy, tests: Sequence[str], *, nightly: bool) -> Ran:
        if not tests:
            return Ran("passed", "")
        chosen = () if nightly else ("-m", "not nightly")
        return copy.run(*tests, *chosen, *(f"--deselect={test}" for test in self.unsound))

    def _is_sound(self, copy: Copy, test: str, tests: Sequence[str]) -> bool:
        """Return whether the failed test passes without the fault; with an empty name, whether collection passes."""
        if test not in self._sound:
            chosen = [test] if test else ["--collect-only", *tests]
            passes = copy.run(*chosen).verdict == "passed"
            if not test:
                return passes
            self._sound[test] = passes
        return self._sound[test]


def _read_state(state: Path | None) -> dict[str, tuple[str, str]]:
    """Return the verdict and the test for each mutant that an earlier run of the round decided."""
    if state is None or not state.exists():
        return {}
    entries = map(json.loads, state.read_text(encoding="utf-8").splitlines())
    return {key: (verdict, test) for key, verdict, test in entries}


def equivalents() -> set[tuple[str, str, str]]:
    """Return file, line before and line after of the mutants known to be equivalent to the original."""
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("equivalent", [])
    return {(each["file"], each["before"], each["after"]) for each in entries}


def drawn(seed: int, only: Sequence[str], *, conditions: bool) -> Iterator[Mutant]:
    """Draw all mutants, or those of conditions, in random order, without those known to be equivalent.

    Raises:
        SystemExit: the list of equivalent mutants names a mutant that no longer exists.
    """
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file in sources(ROOT)}
    everything = {each: each.lines(texts[file]) for file in texts for each in sites(file, texts[file])}
    known = equivalents()
    stale = known - {(each.file, before, after) for each, (_, before, after) in everything.items()}
    if stale:
        raise SystemExit(f"{EQUIVALENT.name} names mutants that do not exist any more: {sorted(stale)}")
    choice = [each for each, (_, before, after) in everything.items() if (each.file, before, after) not in known]
    if conditions:
        choice = [each for each in choice if each.is_condition]
    if only:
        choice = [each for each in choice if any(f"{each.file}:{everything[each][0]}".startswith(o) for o in only)]
    random.Random(seed).shuffle(choice)
    return iter(choice)


def main() -> int:
    """Run a round and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=amount, default=100, help="mutants that compile")
    parser.add_argument("--jobs", type=int, default=0, help="copies of the tree, 0 for one per core")
    parser.add_argument("--test-limit", type=float, default=180, help="seconds after which a test counts as hung")
    parser.add_argument("--limit", type=float, default=900, help="seconds for all tests of a mutant")
    parser.add_argument("--state", type=Path, help="the file of results of an unchanged tree, which is continued")
    parser.add_argument("--conditions", action="store_true", help="draw faults in decisions only")
    parser.add_argument("--own", action="store_true", help="run the module's own tests only")
    parser.add_argument("only", nargs="*", help="prefixes of FILE:LINE; only such mutants are drawn")
    arguments = parser.parse_args()
    arguments.jobs = arguments.jobs or os.cpu_count() or 1
    mutants = drawn(arguments.seed, arguments.only, conditions=arguments.conditions)
    with tempfile.TemporaryDirectory(prefix="ferrule-mutants-") as folder, ThreadPoolExecutor(arguments.jobs) as pool:
        tests = Round(Path(folder), arguments)
        missing = arguments.number
        while missing and (batch := list(islice(mutants, missing))):
            missing -= sum(verdict != "discarded" for verdict in pool.map(tests.decide, batch))
    for test in tests.unsound:
        print(f"left out, since it fails or takes too long without a fault: {test}")
    counts = Counter(verdict for verdict, _, _ in tests.results)
    survivors = sorted((each, test) for verdict, each, test in tests.results if verdict == "survived")
    print(f"\nsurvivors of seed {arguments.seed}:" if survivors else "\nno survivors")
    for mutant, test in survivors:
        number, before, after = mutant.lines((ROOT / mutant.file).read_text(encoding="utf-8"))
        print(f"{mutant.file}:{number} ({test})\n    {before}\n    {after}")
    decided = counts["killed"] + counts["hung"] + counts["survived"]
    rate = (counts["killed"] + counts["hung"]) / decided if decided else 0.0
    shares = ", ".join(f"{counts[name]} {name}" for name in ("killed", "hung", "survived", "undecided", "discarded"))
    print(
        f"seed {arguments.seed}: {shares}; {rate:.1%} of {decided} decided mutants were noticed, the goal is {GOAL:.0%}"
    )
    return 0 if decided and rate >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
