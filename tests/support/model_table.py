# SPDX-License-Identifier: Apache-2.0
"""The command that checks the collection of public models, and its tables."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from public_models import (
    COLLECTION,
    LEAST,
    Outcome,
    PublicModel,
    Setting,
    blocking,
    check,
    collection,
    keep,
    kept,
    located,
    missing_lines,
)

LEAST_SHARE = 0.95
"""The share of the models that TensorFlow Lite Micro runs whose results must be equal, on each board too."""
_SHOWN = 60


def report(outcomes: Sequence[Outcome], boards: Sequence[str] = ()) -> list[str]:
    """Return the lines of the whole table: each model, what blocks, and the counts."""
    lines = [
        "| " + " | ".join(["model", "TFLM", "Ferrule", "steps", *boards, "detail"]) + " |",
        "|" + "---|" * (5 + len(boards)),
    ]
    for each in outcomes:
        ferrule = "refused" if each.blocks else each.verdict
        detail = "; ".join(dict.fromkeys(each.blocks)) if each.blocks else each.detail
        notes = {f"{board}: {found['detail']}" for board, found in each.boards.items() if found.get("detail")}
        tflm = f"no: {each.tflm}" if each.tflm else "runs"
        cells = [_on_board(each, board) for board in boards]
        words = [each.model.name, tflm[:_SHOWN], ferrule, str(each.steps or "-"), *cells]
        lines.append("| " + " | ".join([*words, "; ".join(filter(None, [detail, *sorted(notes)]))]) + " |")
    return [*lines, "", *_blocking(outcomes), "", *summary(outcomes, boards)]


def summary(outcomes: Sequence[Outcome], boards: Sequence[str] = ()) -> list[str]:
    """Return the counts."""
    runs = [each for each in outcomes if not each.tflm]
    verdicts = Counter("refused" if each.blocks else each.verdict for each in runs)
    lines = [
        f"{len(outcomes)} models; TensorFlow Lite Micro runs {len(runs)}; of these, {_counts(verdicts)}",
        f"of the {len(outcomes) - len(runs)} that it does not run, Ferrule loads "
        f"{sum(bool(each.tflm) and not each.blocks for each in outcomes)}",
    ]
    for board in boards:
        verdicts = Counter("refused" if each.blocks else each.boards[board]["verdict"] for each in runs)
        lines.append(f"of these {len(runs)} on {board}: {_counts(verdicts)}")
    return lines


def shortfalls(outcomes: Sequence[Outcome], boards: Sequence[str] = ()) -> list[str]:
    """Return what a run over the whole collection lacks: models, or the share of equal results."""
    runs = [each for each in outcomes if not each.tflm]
    found = [] if len(outcomes) >= LEAST else [f"{len(outcomes)} models were checked, expected {LEAST} at least"]
    for board in (None, *boards):
        share = sum(each.agrees(board) for each in runs if not each.blocks) / max(1, len(runs))
        if share < LEAST_SHARE:
            found.append(f"{board or 'numpy'}: {share:.1%} agree, expected {LEAST_SHARE:.0%} at least")
    return found


def _counts(verdicts: Counter[str]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))


def _on_board(outcome: Outcome, board: str) -> str:
    found = outcome.boards.get(board)
    if found is None:
        return "-"
    if "count" not in found:
        return str(found["verdict"])
    return (
        f"{found['verdict']}, {found['steps']} steps, {found['engine']}: {found['count']:,} instructions, "
        f"flash {found['flash']:,} B, RAM {found['ram']:,} B"
    )


def _blocking(outcomes: Sequence[Outcome]) -> list[str]:
    lines = [
        "| what blocks | models | of them run by TFLM | blocked by nothing else | an example |",
        "|---|---|---|---|---|",
    ]
    for reason, positions in blocking([each.blocks for each in outcomes]):
        blocked = [outcomes[position] for position in positions]
        runnable = sum(not each.tflm for each in blocked)
        alone = sum(len(set(each.blocks)) == 1 for each in blocked)
        lines.append(f"| {reason} | {len(blocked)} | {runnable} | {alone} | {blocked[0].model.name} |")
    return lines


def main(description: str | None, arguments: Sequence[str] | None = None) -> int:
    """Check the models of the folder and print the tables.

    Return 1 if a file is missing, a result differs, or a run over the whole collection falls short.
    """
    options = _parser(description).parse_args(arguments)
    if options.models is None:
        sys.exit("set FERRULE_PUBLIC_MODELS, or --models, to a folder with the files that tests/models.toml lists")
    chosen = _chosen(options)
    files = located(chosen, options.models)
    missing = missing_lines(chosen, files)
    present = [model for model in chosen if model.sha256 in files]
    if options.largest is not None:
        present = [model for model in present if files[model.sha256].stat().st_size <= options.largest << 10]
    if options.sample is not None:
        present = [
            present[index * len(present) // options.sample] for index in range(min(options.sample, len(present)))
        ]
    setting = Setting(
        boards=tuple(options.board),
        steps=options.steps,
        board_steps=options.board_steps,
        audio=options.audio or "",
        limit_s=options.limit,
    )

    def one(model: PublicModel) -> Outcome:
        outcome = kept(model, setting, options.results)
        if outcome is None:
            outcome = check(model, files[model.sha256], setting)
            keep(outcome, setting, options.results)
        return outcome

    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(one, present):
            outcomes.append(outcome)
            if not options.no_progress:
                verdicts = [outcome.verdict, *(found["verdict"] for found in outcome.boards.values())]
                said = "refused" if outcome.blocks else ", ".join(verdicts)
                print(f"{len(outcomes)}: {outcome.model.name}: {said}", file=sys.stderr, flush=True)
    whole = not options.words and len(present) + len(missing) == len(collection(options.list))
    lacks = shortfalls(outcomes, setting.boards) if whole else []
    print("\n".join([*report(outcomes, setting.boards), *lacks, *missing]))
    return int(bool(missing) or bool(lacks) or any(outcome.failed for outcome in outcomes))


def _parser(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--models", type=Path, default=os.environ.get("FERRULE_PUBLIC_MODELS"), metavar="FOLDER")
    parser.add_argument("--list", type=Path, default=COLLECTION, metavar="FILE", help="another list of models")
    parser.add_argument("--board", action="append", default=[], help="also run the firmware on this board; repeatable")
    parser.add_argument("--steps", type=int, default=4, help="length of the sequence of inputs")
    parser.add_argument("--board-steps", type=int, default=2, help="how many of them the boards run")
    parser.add_argument("--audio", metavar="WAV", help="models for sound only, with inputs from a file, or 'synthetic'")
    parser.add_argument("--largest", type=int, metavar="KIB", help="only files of at most this size")
    parser.add_argument("--sample", type=int, metavar="N", help="only N models, evenly spaced in the collection")
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="keep outcomes, and skip those that are kept")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=120, help="seconds for each step of a model")
    parser.add_argument("--no-progress", action="store_true")
    return parser


def _chosen(options: argparse.Namespace) -> list[PublicModel]:
    chosen = [model for model in collection(options.list) if all(word in model.name for word in options.words)]
    if options.audio is not None:
        chosen = [model for model in chosen if model.audio]
    if not chosen:
        sys.exit(f"no model has all of the words {options.words}")
    return chosen
