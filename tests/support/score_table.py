# SPDX-License-Identifier: Apache-2.0
"""The scoreboard: the cases of third parties' test suites, run by the numpy kernels and by CpuAcc."""

from __future__ import annotations

import argparse
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from score_cases import Case, Run, SourceError, Suite
from score_cmsis import CMSIS_NN
from score_mlperf import MLPERF_TINY
from score_onnx import NODES
from score_tflm import KERNELS, SEANET

from ferrule._frozen import positional
from ferrule.errors import FerruleError
from ferrule.graph import Array
from ferrule.network import Network
from ferrule.network.bounds import initial_bounded, run_bounded
from ferrule.optimizer import optimize
from ferrule.runtime import Runtime

SUITES = (KERNELS, SEANET, CMSIS_NN, NODES, MLPERF_TINY)
PASS, REFUSED, FAIL = "pass", "refused", "fail"


@positional
class Outcome:
    """What became of a case."""

    case: str
    result: str
    """`pass`, `refused` or `fail`."""
    reason: str = ""


@positional
class Score:
    """What became of a suite."""

    suite: Suite
    version: str
    outcomes: tuple[Outcome, ...]

    @property
    def counts(self) -> Counter[str]:
        """The number of cases by result."""
        return Counter(each.result for each in self.outcomes)

    @property
    def complete(self) -> bool:
        """Whether the suite has at least its least count of cases."""
        return len(self.outcomes) >= self.suite.least


def outcome_of(case: Case, runtime: Runtime) -> Outcome:
    """Run a case."""
    try:
        if case.check is not None:
            wrong = case.check()
            return Outcome(case.name, FAIL, wrong) if wrong else Outcome(case.name, PASS)
        network, runs = case.make()
        runner = _Runner(network, runtime)
        for index, run in enumerate(runs):
            for kernels, outputs, errors in runner.outputs(run):
                if case.invalid:
                    continue
                if difference := _difference(outputs, run.outputs, errors, case):
                    return Outcome(case.name, FAIL, f"{kernels}, run {index}: {difference}")
    except FerruleError as error:
        return Outcome(case.name, PASS) if case.invalid else Outcome(case.name, REFUSED, _general(str(error)))
    except Exception as error:  # noqa: BLE001 - any other exception is a failure of the case, not of the scoreboard
        return Outcome(case.name, FAIL, f"{type(error).__name__}: {error}")
    return (
        Outcome(case.name, FAIL, "the suite expects an error, but there is none")
        if case.invalid
        else Outcome(case.name, PASS)
    )


def score(suite: Suite, word: str = "", progress: Callable[[Outcome], None] = lambda _: None) -> Score:
    """Run all cases of a suite whose names have the word; SourceError if the source is absent or another version."""
    folder = _source(suite)
    version = suite.version(folder)
    outcomes = []
    with Runtime() as runtime:
        for case in suite.cases(folder):
            if word in case.name:
                outcomes.append(outcome_of(case, runtime))
                progress(outcomes[-1])
    return Score(suite, version, tuple(outcomes))


def table(scores: Sequence[Score]) -> list[str]:
    """Return the table of counts, and the reasons of refusals with their numbers."""
    lines = ["| suite | version | cases | pass | refused | fail |", "|---|---|---|---|---|---|"]
    for each in scores:
        counts = each.counts
        lines.append(
            f"| {each.suite.title} | {each.version} | {len(each.outcomes)} "
            f"| {counts[PASS]} | {counts[REFUSED]} | {counts[FAIL]} |"
        )
    for each in scores:
        reasons = Counter(outcome.reason for outcome in each.outcomes if outcome.result == REFUSED)
        if reasons:
            lines += ["", f"{each.suite.title}:", "", "| refused because | cases |", "|---|---|"]
            lines += [
                f"| {reason} | {count} |" for reason, count in sorted(reasons.items(), key=lambda i: (-i[1], i[0]))
            ]
    return lines


def main(description: str | None, arguments: Sequence[str] | None = None) -> int:
    """Print the scoreboard; return 1 if a case fails, or if a suite is absent or too small."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(suite.name for suite in SUITES))
    parser.add_argument("--word", default="", help="only cases whose names contain this; no least counts")
    parser.add_argument("--markdown", type=Path, help="write the table into this file, too")
    options = parser.parse_args(arguments)
    unknown = set(options.suites) - {suite.name for suite in SUITES}
    if unknown:
        parser.error(f"there is no suite {', '.join(sorted(unknown))}; known: {', '.join(s.name for s in SUITES)}")
    scores, absent = [], False
    for suite in SUITES:
        if options.suites and suite.name not in options.suites:
            continue
        try:
            scores.append(score(suite, options.word))
        except SourceError as error:
            print(f"{suite.title}: {error}")
            absent = True
            continue
        for outcome in scores[-1].outcomes:
            if outcome.result == FAIL:
                print(f"FAIL {suite.name} {outcome.case}: {outcome.reason}")
    lines = table(scores)
    print("\n".join(lines))
    if options.markdown is not None:
        options.markdown.write_text("\n".join(lines) + "\n", encoding="utf-8")
    small = [each for each in scores if not (each.outcomes if options.word else each.complete)]
    for each in small:
        print(f"{each.suite.title}: {len(each.outcomes)} cases, expected at least {each.suite.least}")
    return int(absent or bool(small) or any(each.counts[FAIL] for each in scores))


class _Runner:
    """The numpy kernels and CpuAcc on one network; CpuAcc has no networks with state, which its runtime refuses."""

    def __init__(self, network: Network, runtime: Runtime) -> None:
        network.validate()
        self._network = network
        self._runtime = runtime
        self._state = initial_bounded(network) if network.states else None
        self._loaded = None
        if self._state is None:
            self._loaded = runtime.load_network(optimize(network, ["CpuAcc"], runtime.registry))

    def outputs(self, run: Run) -> Iterator[tuple[str, Sequence[Array], Sequence[Array | None]]]:
        """Yield the name of the kernels, their outputs, and how far other code may be away from each element."""
        shapes = [info.shape for info in self._network.inputs]
        inputs = [array.reshape(shape) for array, shape in zip(run.inputs, shapes, strict=True)]
        wanted = run_bounded(self._network, inputs, self._state)
        errors = [each.error for each in wanted]
        yield "numpy", [each.values for each in wanted], errors
        if self._loaded is not None:
            yield "CpuAcc", self._runtime.enqueue_workload(self._loaded, inputs), errors


def _source(suite: Suite) -> Path:
    if not suite.variable:
        return Path()
    value = os.environ.get(suite.variable)
    if not value:
        raise SourceError(f"set {suite.variable} to {suite.source}")
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise SourceError(f"{suite.variable} is {value}, which is no folder; set it to {suite.source}")
    return folder


def _difference(outputs: Sequence[Array], expected: Sequence[Array], errors: Sequence[Array | None], case: Case) -> str:
    """Return the first difference; a float may be off by twice its bound, since both sides may be off by one."""
    tolerance = case.tolerance
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs, expected {len(expected)}"
    for index, (found, wanted, error) in enumerate(zip(outputs, expected, errors, strict=True)):
        if found.dtype != wanted.dtype or found.size != wanted.size:
            return f"output {index} is {found.dtype}{found.shape}, expected {wanted.dtype}{wanted.shape}"
        a, b = found.ravel(), wanted.ravel()
        if found.dtype.kind != "f":
            wrong = np.abs(a.astype(object) - b.astype(object)) > tolerance if tolerance else a != b
        else:
            with np.errstate(invalid="ignore", over="ignore"):
                known = np.zeros(b.shape) if error is None else np.where(np.isfinite(error), error, 0).ravel()
                near = np.abs(a.astype(np.float64) - b) <= 2 * known + case.relative * np.abs(b)
                wrong = ~(near | (a == b) | (np.isnan(a) & np.isnan(b)))
        if wrong.any():
            at = int(np.argmax(wrong))
            return f"output {index}: {wrong.sum()} of {wrong.size} differ; [{at}] is {a[at]}, expected {b[at]}"
    return ""


def _general(reason: str) -> str:
    """Return a reason without the names and numbers of one case."""
    lines = reason.splitlines()
    reason = re.sub(r"^((network|model): |operator \d+ )+", "", lines[0] if len(lines) == 1 else lines[1].strip())
    reason = re.sub(r"^layer '[^']*' ", "", re.sub(r" -> tensor '.*?'(?=:|$)", "", reason))
    return re.sub(
        r"-?\d+\.\d+(e[-+]?\d+)?|(?<![A-Za-z_0-9])-?\d{2,}\b|[\[(][-\d, ]+[\])]", "N", re.sub(r"'[^']*'", "''", reason)
    )
