# SPDX-License-Identifier: Apache-2.0
"""The collection of public models: which of them TensorFlow Lite Micro runs, Ferrule loads, and both agree on."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

COLLECTION = Path(__file__).resolve().parents[1] / "models.toml"
LEAST = 100
"""The collection has at least this many models."""
_WORKER = Path(__file__).resolve().parent / "model_worker.py"
_SUFFIXES = {".tflite", ".lite"}
_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicModel:
    """A model's file in a public repository."""

    repository: str
    commit: str
    path: str
    sha256: str
    licence: str
    note: str = ""

    @property
    def name(self) -> str:
        """The repository and the path."""
        return f"{self.repository}: {self.path}"


@dataclass(slots=True)
class Outcome:
    """What the steps found for one model."""

    model: PublicModel
    tflm: str = ""
    """Empty if TensorFlow Lite Micro runs the model, else the reason why not."""
    blocks: list[str] = field(default_factory=list)
    """Why Ferrule does not load it; empty if it does."""
    verdict: str = ""
    """`exact`, `close` (floats within the documented tolerance), `differs`, or why there is no comparison."""
    detail: str = ""
    board: str = ""

    @property
    def failed(self) -> bool:
        """Whether a result is wrong; a refusal is not."""
        return self.verdict in {"differs", "fails"} or self.board in {"differs", "fails"}


def collection(path: Path = COLLECTION) -> list[PublicModel]:
    """Return the models of the committed list."""
    sources = tomllib.loads(path.read_text(encoding="utf-8"))["source"]
    return [
        PublicModel(repository=source["repository"], commit=source["commit"], licence=source["licence"], **model)
        for source in sources
        for model in source["model"]
    ]


def located(models: Iterable[PublicModel], folder: Path) -> dict[str, Path]:
    """Return the files of the folder by the SHA-256 of the models they are; each file is read once."""
    wanted = {model.sha256 for model in models}
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in _SUFFIXES and path.is_file():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            if digest in wanted:
                found.setdefault(digest, path)
    return found


def check(model: PublicModel, path: Path, *, number: int, limit_s: float, board: str | None) -> Outcome:
    """Return the outcome of all steps of one model."""
    outcome = Outcome(model)
    with tempfile.TemporaryDirectory() as folder:
        step = partial(_step, path=path, folder=folder, number=number, limit_s=limit_s)
        oracle = step("tflm")
        outcome.tflm = oracle.get("error", "")
        loaded = step("load")
        if "error" in loaded or not loaded["loads"]:
            outcome.blocks = _reasons(loaded.get("blocks", [])) or [loaded.get("error", "no reason")]
            told = {reason.partition(":")[0] for reason in outcome.blocks}
            outcome.blocks += [
                f"{name}: this operator is not supported" for name in loaded.get("lacks", []) if name not in told
            ]
            return outcome
        if outcome.tflm:
            outcome.verdict = "no oracle"
        else:
            compared = step("compare")
            outcome.verdict = compared.get("verdict", "fails")
            outcome.detail = compared.get("detail", compared.get("error", ""))
        if board is not None:
            ran = step("board", board)
            outcome.board = ran.get("board", "fails")
            outcome.detail = "; ".join(filter(None, (outcome.detail, ran.get("detail", ran.get("error", "")))))
    return outcome


def report(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the lines of the whole table: each model, what blocks, and the counts."""
    lines = ["| model | TFLM | Ferrule | board | detail |", "|---|---|---|---|---|"]
    for each in outcomes:
        ferrule = "refused" if each.blocks else each.verdict
        detail = "; ".join(dict.fromkeys(each.blocks)) if each.blocks else each.detail
        tflm = f"no: {each.tflm}" if each.tflm else "runs"
        lines.append(f"| {each.model.name} | {tflm[:_SHOWN]} | {ferrule} | {each.board or '-'} | {detail} |")
    models: dict[str, list[Outcome]] = defaultdict(list)
    for each in outcomes:
        for reason in dict.fromkeys(each.blocks):
            models[reason].append(each)
    lines += [
        "",
        "| what blocks | models | of them run by TFLM | blocked by nothing else | an example |",
        "|---|---|---|---|---|",
    ]
    for reason, blocked in sorted(models.items(), key=lambda item: (-len(item[1]), item[0])):
        runnable = sum(not each.tflm for each in blocked)
        alone = sum(len(set(each.blocks)) == 1 for each in blocked)
        lines.append(f"| {reason} | {len(blocked)} | {runnable} | {alone} | {blocked[0].model.name} |")
    return [*lines, "", *summary(outcomes)]


def summary(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the counts."""
    runs = [each for each in outcomes if not each.tflm]
    verdicts = Counter("refused" if each.blocks else each.verdict for each in runs)
    boards = Counter(each.board for each in runs if each.board)
    lines = [
        f"{len(outcomes)} models; TensorFlow Lite Micro runs {len(runs)}; of these, "
        f"{', '.join(f'{count} {verdict}' for verdict, count in sorted(verdicts.items()))}",
        f"of the {len(outcomes) - len(runs)} that it does not run, Ferrule loads "
        f"{sum(bool(each.tflm) and not each.blocks for each in outcomes)}",
    ]
    if boards:
        lines.append(f"on the board: {', '.join(f'{count} {verdict}' for verdict, count in sorted(boards.items()))}")
    return lines


def main(description: str | None, arguments: Sequence[str] | None = None) -> int:
    """Check the models of the folder and print the table; return 1 if a file is missing or a result differs."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--models", type=Path, default=os.environ.get("FERRULE_PUBLIC_MODELS"), metavar="FOLDER")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--inputs", type=int, default=4, help="length of the sequence of inputs")
    parser.add_argument("--limit", type=float, default=120, help="seconds for each step of a model")
    parser.add_argument("--board", help="also run the firmware on this board")
    parser.add_argument("--no-progress", action="store_true")
    options = parser.parse_args(arguments)
    if options.models is None:
        sys.exit("set FERRULE_PUBLIC_MODELS, or --models, to a folder with the files that tests/models.toml lists")
    chosen = [model for model in collection() if all(word in model.name for word in options.words)]
    if not chosen:
        sys.exit(f"no model has all of the words {options.words}")
    files = located(chosen, options.models)
    missing = [model for model in chosen if model.sha256 not in files]

    def one(model: PublicModel) -> Outcome:
        return check(model, files[model.sha256], number=options.inputs, limit_s=options.limit, board=options.board)

    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(one, (model for model in chosen if model.sha256 in files)):
            outcomes.append(outcome)
            if not options.no_progress:
                said = "refused" if outcome.blocks else f"{outcome.verdict} {outcome.board}"
                print(f"{len(outcomes)}: {outcome.model.name}: {said}", file=sys.stderr, flush=True)
    print("\n".join(report(outcomes)))
    for model in missing:
        print(f"missing: {model.name} at {model.commit}, SHA-256 {model.sha256}")
    return int(bool(missing) or any(outcome.failed for outcome in outcomes))


def _step(step: str, *more: str, path: Path, folder: str, number: int, limit_s: float) -> dict[str, Any]:
    """Return the result of a step in a process of its own, or an `error`."""
    words = [sys.executable, str(_WORKER), step, str(path), folder, str(number), str(limit_s / 2), *more]
    try:
        ended = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"no result within {limit_s:g} s"}
    if ended.returncode == 0:
        result: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
        return result
    said = [line for line in ended.stderr.splitlines() if line.strip()]
    plain = [line for line in said if not line.startswith((" ", "Traceback"))]
    reason = (plain or said or [""])[0] if step == "tflm" else (said or [""])[-1]
    return {"error": f"status {ended.returncode}: {reason}"}


def _reasons(lines: Sequence[str]) -> list[str]:
    """Return the reasons of a refusal without what is particular to one model: positions and names."""
    inner = [line.strip() for line in lines if line.startswith("  ")] or list(lines)
    return [_general(line) for line in inner]


def _general(line: str) -> str:
    line = re.sub(r"^CUSTOM '(.*?)'", r"CUSTOM \1", re.sub(r"^((.*?\.tflite|model): )?(operator \d+ )?", "", line))
    line = re.sub(r" -> tensor '.*?'(?=:|$)", "", line)
    line = re.sub(r"'[^']*'", "''", line)
    return re.sub(r"\[\d+(, ?\d+)*\]|\b\d{2,}\b|\d+\.\d+(e-?\d+)?", "N", line)
