# SPDX-License-Identifier: Apache-2.0
"""The command that checks a folder of ONNX models, and its table."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from public_models import blocking, collection, located, missing_lines, reasons, step

HOST = "host"
"""Stands for the runtime on this machine where a board's name is expected."""
_REFUSED = "refused"


@dataclass(slots=True)
class OnnxOutcome:
    """What the steps found for one model."""

    name: str
    about: dict[str, str]
    """`exporter`, `form` and `note`, from the file beside the model; empty if there is none."""
    oracle: str = ""
    """Empty if onnxruntime runs the model or need not, else the reason why not."""
    loaded: dict[str, Any] = field(default_factory=dict)
    blocks: list[str] = field(default_factory=list)
    """Why Ferrule refuses the model, without what is particular to it; empty if it does not."""
    counted: dict[str, Any] = field(default_factory=dict)
    """The comparison of the numpy kernels with onnxruntime; `verdict` also says why there is none."""
    boards: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """`exact`, `close` or `near` (floats), `counted` (integers of a few elements differ), or what is wrong."""
        return str(self.counted["verdict"])

    @property
    def failed(self) -> bool:
        """Whether a result is wrong or missing; a refusal is not, nor is a model that a board has no room for."""
        wrong = {"differs", "fails"}
        return self.verdict in wrong or any(each["verdict"] in wrong for each in self.boards.values())


def check(
    path: Path,
    boards: Sequence[str],
    *,
    steps: int,
    board_steps: int,
    limit_s: float,
    name: str = "",
    shapes: Mapping[str, Sequence[int]] | None = None,
    first_fit: bool = False,
) -> OnnxOutcome:
    """Return the outcome of all steps of one model; each step runs in a process of its own.

    With `first_fit`, the model runs on the first of the boards that has room for it, and on no other.
    """
    beside = path.with_suffix(".json")
    about = json.loads(beside.read_text(encoding="utf-8")) if beside.is_file() else {}
    outcome = OnnxOutcome(name=name or path.stem, about=about)
    with tempfile.TemporaryDirectory() as folder:
        given = {name: list(shape) for name, shape in (shapes or {}).items()}
        (Path(folder) / "shapes.json").write_text(json.dumps(given), encoding="utf-8")

        def run(kind: str, number: int, *more: str) -> dict[str, Any]:
            return step(kind, number, *more, path=path, folder=folder, limit_s=limit_s)

        outcome.loaded = run("load", 0)
        if outcome.loaded.get("loads"):
            outcome.oracle = run("onnxruntime", steps).get("error", "")
        if "error" in outcome.loaded:
            outcome.counted = {"verdict": "fails", "detail": outcome.loaded["error"]}
        elif not outcome.loaded["loads"]:
            lines = outcome.loaded["blocks"]
            outcome.blocks = reasons(lines)
            told = [line.strip() for line in lines if line.startswith("  ")] or lines
            outcome.counted = {"verdict": _REFUSED, "detail": "; ".join(dict.fromkeys(told))}
        elif outcome.oracle:
            outcome.counted = {"verdict": "no oracle", "detail": outcome.oracle}
        else:
            found = run("counted", 0)
            outcome.counted = {"verdict": "fails", "detail": found["error"]} if "error" in found else found
        for board in boards if outcome.verdict not in {_REFUSED, "fails"} else ():
            ran = run("host", steps) if board == HOST else run("board", board_steps, board)
            outcome.boards[board] = {"verdict": "fails", "detail": ran["error"]} if "error" in ran else ran
            if first_fit and outcome.boards[board]["verdict"] != "too big":
                break
    return outcome


def report(outcomes: Sequence[OnnxOutcome], boards: Sequence[str]) -> list[str]:
    """Return the lines of the table, and the counts."""
    heads = ["model", "exporter", "form", "layers", "MACs", "numpy and onnxruntime", *boards]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for each in outcomes:
        compared = ": ".join(filter(None, [each.verdict, str(each.counted.get("detail", ""))]))
        words = [
            each.name,
            each.about.get("exporter", ""),
            each.about.get("form", ""),
            str(each.loaded.get("layers", "-")),
            f"{each.loaded['macs']:,}" if "macs" in each.loaded else "-",
            compared,
            *(_on_board(each.boards.get(board)) for board in boards),
        ]
        lines.append("| " + " | ".join(word.replace("|", "/") for word in words) + " |")
    lines += ["", "| what blocks | models | blocked by nothing else | an example |", "|---|---|---|---|"]
    for reason, positions in blocking([each.blocks for each in outcomes]):
        alone = sum(len(set(outcomes[position].blocks)) == 1 for position in positions)
        lines.append(f"| {reason} | {len(positions)} | {alone} | {outcomes[positions[0]].name} |".replace("||", "/"))
    lines += ["", f"{len(outcomes)} models; numpy and onnxruntime: {_counts(each.verdict for each in outcomes)}"]
    for board in boards:
        verdicts = [each.boards[board]["verdict"] for each in outcomes if board in each.boards]
        lines.append(f"{board} and numpy: {_counts(verdicts)}")
    return lines


def _counts(verdicts: Any) -> str:  # noqa: ANN401
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(Counter(verdicts).items())) or "none"


def _on_board(found: dict[str, Any] | None) -> str:
    if found is None:
        return "-"
    if "cpu_ref" in found:
        fallen = f"{found['cpu_ref']} of {found['layers']} layers on CpuRef"
        return ", ".join(filter(None, [found["verdict"], f"{found['steps']} runs", fallen, found.get("detail", "")]))
    if "count" not in found:
        return ": ".join(filter(None, [str(found["verdict"]), str(found.get("detail", ""))]))
    return (
        f"{found['verdict']}, {found['steps']} runs, {found['engine']}: {found['count']:,} instructions, "
        f"flash {found['flash']:,} B, RAM {found['ram']:,} B"
    )


def main(description: str | None, arguments: Sequence[str] | None = None) -> int:
    """Check the models of the folder and print the table; return 1 if a result is wrong or missing, or no model is."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--models", type=Path, required=True, metavar="FOLDER")
    parser.add_argument(
        "--board",
        action="append",
        default=[],
        help="also run the firmware on this board, or the runtime for 'host'; repeatable",
    )
    parser.add_argument("--steps", type=int, default=8, help="number of inputs")
    parser.add_argument("--board-steps", type=int, default=2, help="how many of them the boards run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=120, help="seconds for each step of a model")
    parser.add_argument(
        "--list", type=Path, metavar="FILE", help="only the models that this list has, by their SHA-256"
    )
    parser.add_argument("--first-fit", action="store_true", help="run each model on the first board with room for it")
    options = parser.parse_args(arguments)
    chosen, missing = _chosen(options)

    def one(found: tuple[str, Path, Mapping[str, Sequence[int]]]) -> OnnxOutcome:
        name, path, shapes = found
        outcome = check(
            path,
            options.board,
            steps=options.steps,
            board_steps=options.board_steps,
            limit_s=options.limit,
            name=name,
            shapes=shapes,
            first_fit=options.first_fit,
        )
        verdicts = [outcome.verdict, *(f"{board} {ran['verdict']}" for board, ran in outcome.boards.items())]
        print(f"{outcome.name}: {', '.join(verdicts)}", file=sys.stderr, flush=True)
        return outcome

    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(one, chosen))
    print("\n".join([*report(outcomes, options.board), *missing]))
    return int(not outcomes or bool(missing) or any(each.failed for each in outcomes))


def _chosen(options: argparse.Namespace) -> tuple[list[tuple[str, Path, Mapping[str, Sequence[int]]]], list[str]]:
    """Return the models (name, file, shapes) of the folder or of the list, and a line for each that is missing."""
    if options.list is None:
        paths = sorted(options.models.rglob("*.onnx"))
        return [(path.stem, path, {}) for path in paths if all(word in str(path) for word in options.words)], []
    models = [each for each in collection(options.list) if all(word in each.name for word in options.words)]
    files = located(models, options.models)
    present = [(each.name, files[each.sha256], each.shapes) for each in models if each.sha256 in files]
    return present, missing_lines(models, files)
