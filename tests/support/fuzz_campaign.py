# SPDX-License-Identifier: Apache-2.0
"""The fuzz campaigns that tests/fuzz.py runs: pieces in child processes, their limits, results and figures."""

from __future__ import annotations

import argparse
import json
import mmap
import os
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock

from amounts import amount
from fuzz_targets import TARGETS
from fuzzing import Target, limit_memory, limit_time, numbers, timed

from ferrule.child_process import ProcessClock

SCRIPT = Path(__file__).parents[1] / "fuzz.py"
PIECE_S = 30.0
"""Rough duration of a piece, after which its result is kept."""
STUCK_S = 20.0
"""Time beyond the limit after which a process that does not react is ended."""
PREPARE_S = 300.0
"""Seconds in which a child begins its first input: it compiles kernels on some machines, which may be busy."""
_NONE = b"\xff" * 8
"""The progress of a child that has not begun its first input."""


@dataclass(slots=True, kw_only=True)
class Result:
    """The result of a piece: a range of a target's inputs."""

    target: str
    seed: int
    first: int
    last: int
    accepted: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0
    """Processor time of the inputs, without the start of the processes."""
    slowest_s: float = 0.0
    peak_mib: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)
    """Index and traceback."""


def run_piece(target: Target, seed: int, first: int, last: int) -> Result:
    """Run a range of inputs in child processes; a child that dies or hangs fails its input, and another goes on."""
    result = Result(target=target.name, seed=seed, first=first, last=last)
    started = time.monotonic()
    at = first
    while at < last:
        with tempfile.TemporaryDirectory(prefix="ferrule-fuzz-") as folder:
            progress, report, log = (Path(folder) / name for name in ("progress", "report", "log"))
            progress.write_bytes(_NONE)
            argv = [sys.executable, str(SCRIPT), target.name, f"--seed={seed}", "--piece", str(at), str(last), folder]
            with log.open("wb") as output:
                child = subprocess.Popen(argv, stdout=output, stderr=output)
                why = _watch(child, progress, target.limit_s)
            for line in report.read_text(encoding="utf-8").splitlines() if report.exists() else ():
                _add(result, json.loads(line))
            stopped = int.from_bytes(progress.read_bytes(), "little")
            if why and progress.read_bytes() == _NONE:
                raise SystemExit(f"{target.name} cannot be prepared: {why}\n{log.read_text(encoding='utf-8')[-3000:]}")
            if why:
                tail = log.read_bytes()[-3000:].decode("utf-8", "replace")
                result.failures.append((stopped, f"{why}\n{tail}"))
            at = stopped + 1 if why else last
    result.seconds = time.monotonic() - started
    return result


def _watch(child: subprocess.Popen[bytes], progress: Path, limit_s: float) -> str:
    """Wait for a child; return why it did not end properly, or "".

    What counts is its processor time, and the host's time only while it sleeps.
    """
    clock = ProcessClock(child.pid)
    before, since = progress.read_bytes(), clock()
    while True:
        try:
            code = child.wait(0.5)
        except subprocess.TimeoutExpired:
            now, now_s = progress.read_bytes(), clock()
            if now != before:
                before, since = now, now_s
            elif now_s - since > (PREPARE_S if now == _NONE else limit_s + STUCK_S):
                child.kill()
                child.wait()
                return "the process hung"
        else:
            return f"the process ended with {code}" if code else ""


def _add(result: Result, record: dict[str, object]) -> None:
    if "index" in record:
        result.failures.append((int(str(record["index"])), str(record["error"])))
        return
    result.cpu_s += float(str(record["cpu_s"]))
    result.accepted += int(str(record["accepted"]))
    result.slowest_s = max(result.slowest_s, float(str(record["slowest_s"])))
    result.peak_mib = max(result.peak_mib, int(str(record["peak_mib"])))


def child(target: Target, seed: int, first: int, last: int, place: Path) -> None:
    """Run a range of inputs in this process, under the limits; the folder gets `progress` and `report`."""
    accepted, slowest_s = 0, 0.0
    with (
        tempfile.TemporaryDirectory(prefix="ferrule-fuzz-", dir=_fast_folder()) as folder,
        (place / "report").open("w", encoding="utf-8") as report,
        (place / "progress").open("r+b") as file,
        mmap.mmap(file.fileno(), 8) as progress,
    ):
        check = target.prepare(Path(folder))
        limit_time()
        if target.limits_memory:
            limit_memory()
        cpu_s = _cpu_s()
        for index in range(first, last):
            progress[:8] = index.to_bytes(8, "little")
            choice = numbers(seed, target.name, index)
            started = time.process_time()
            try:
                with timed(target.limit_s):
                    accepted += check(choice)
            except KeyboardInterrupt:
                raise
            except BaseException:  # noqa: BLE001
                print(json.dumps({"index": index, "error": traceback.format_exc()[-4000:]}), file=report, flush=True)
            slowest_s = max(slowest_s, time.process_time() - started)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        figures = {"accepted": accepted, "cpu_s": _cpu_s() - cpu_s, "slowest_s": slowest_s, "peak_mib": peak}
        print(json.dumps(figures), file=report)


def _cpu_s() -> float:
    """Return the processor time of this process and its children."""
    return sum(os.times()[:4])


def _fast_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108


class Campaign:
    """The pieces of a campaign, and the results of those that are done."""

    def __init__(self, folder: Path, seed: int, number: int, targets: Sequence[Target], *, each: bool = False) -> None:
        """`number` is that of the inputs to all readers together, or to `each` target."""
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / f"results_{seed}.jsonl"
        self._summary = folder / "summary.json"
        self._seed = seed
        self._counts = {target: number if each else max(1, round(number * target.share)) for target in targets}
        self._lock = Lock()
        lines = self._file.read_text(encoding="utf-8").splitlines() if self._file.exists() else []
        self.results = [Result(**json.loads(line)) for line in lines]

    def pieces(self) -> Iterator[tuple[Target, int, int]]:
        """Yield the ranges that are not done, the largest work first."""
        for target, count in sorted(self._counts.items(), key=lambda item: -item[0].limit_s):
            done = {(each.first, each.last) for each in self.results if each.target == target.name}
            step = max(1, min(count, round(PIECE_S * target.rate)))
            for first in range(0, count, step):
                piece = (first, min(first + step, count))
                if piece not in done:
                    yield target, *piece

    def run(self, jobs: int) -> None:
        """Run the pieces that are not done."""
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda piece: self._run(*piece), list(self.pieces())))

    def _run(self, target: Target, first: int, last: int) -> None:
        result = run_piece(target, self._seed, first, last)
        with self._lock, self._file.open("a", encoding="utf-8") as file:
            self.results.append(result)
            print(json.dumps(asdict(result)), file=file)
        print(f"{target.name} {first} to {last - 1}: {_figures([result])}", flush=True)
        for index, error in result.failures:
            print(
                f"FAILED: python tests/fuzz.py {target.name} --seed {self._seed} --index {index}\n{error}", flush=True
            )

    def summarise(self) -> int:
        """Print the figures of each target and write them to summary.json; return the number of failures."""
        rows = {}
        for target in self._counts:
            mine = [each for each in self.results if each.target == target.name]
            rows[target.name] = {
                "inputs": sum(each.last - each.first for each in mine),
                "accepted": sum(each.accepted for each in mine),
                "failures": sum(len(each.failures) for each in mine),
                "seconds": round(sum(each.seconds for each in mine), 1),
                "cpu_s": round(sum(each.cpu_s for each in mine), 1),
                "slowest_s": round(max((each.slowest_s for each in mine), default=0.0), 3),
                "peak_mib": max((each.peak_mib for each in mine), default=0),
            }
            print(f"{target.name:16} {_figures(mine)}")
        readers = [rows[target.name] for target in self._counts if target.reads]
        print(f"{'all readers':16} {sum(int(row['inputs']) for row in readers):,} inputs")
        self._summary.write_text(json.dumps({"seed": self._seed, "targets": rows}, indent=2) + "\n", encoding="utf-8")
        return sum(int(row["failures"]) for row in rows.values())


def _figures(results: Sequence[Result]) -> str:
    inputs = sum(each.last - each.first for each in results)
    cpu_s = sum(each.cpu_s for each in results)
    return (
        f"{inputs:9,} inputs, {sum(each.accepted for each in results):9,} accepted, "
        f"{sum(len(each.failures) for each in results)} failed, {inputs / max(cpu_s, 1e-3):8,.0f} per CPU second, "
        f"slowest {max((each.slowest_s for each in results), default=0.0):.2f} s, "
        f"peak {max((each.peak_mib for each in results), default=0)} MiB"
    )


def main(description: str) -> int:
    """Run a campaign, or repeat one input, as the command line says."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=amount, default=1_000_000, help="inputs to all readers together")
    parser.add_argument("--each", action="store_true", help="as many inputs to each target")
    parser.add_argument("--jobs", type=int, default=0, help="processes, 0 for one per core")
    parser.add_argument("--state", type=Path, default=Path("build/fuzz"), help="the folder of results")
    parser.add_argument("--index", type=int, help="repeat this input of one target, without limits")
    parser.add_argument("--piece", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--list", action="store_true", help="list the targets")
    options = parser.parse_args()
    known = {target.name: target for target in TARGETS}
    if options.list:
        print("\n".join(known))
        return 0
    for name in options.targets:
        if name not in known:
            parser.error(f"there is no target '{name}'; known: {', '.join(known)}")
    chosen = [known[name] for name in options.targets or known]
    if options.piece is not None:
        first, last, folder = options.piece
        child(chosen[0], options.seed, int(first), int(last), Path(folder))
        return 0
    if options.index is not None:
        with tempfile.TemporaryDirectory(prefix="ferrule-fuzz-") as folder:
            accepted = chosen[0].prepare(Path(folder))(numbers(options.seed, chosen[0].name, options.index))
        print("accepted" if accepted else "refused")
        return 0
    campaign = Campaign(options.state, options.seed, options.number, chosen, each=options.each)
    campaign.run(options.jobs or os.cpu_count() or 1)
    return 1 if campaign.summarise() else 0
