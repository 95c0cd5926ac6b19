# SPDX-License-Identifier: Apache-2.0
"""Compares two documents of a kind: what has changed, and whether it is worse than allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from difflib import SequenceMatcher

from ferrule._version import VERSION
from ferrule.errors import FerruleError
from ferrule.interface import option
from ferrule.report.base import Document, Measure, part_of
from ferrule.report.comparison_document import Change, ChangePart, Comparison, SidePart
from ferrule.report.document import Verdict
from ferrule.report.evaluation_document import EvaluationDocument
from ferrule.report.evidence import Evidence
from ferrule.report.inspection import Inspection
from ferrule.report.limits import Limits
from ferrule.report.quantization_document import QuantizationDocument
from ferrule.report.run_document import ReportDocument
from ferrule.report.search_document import SearchDocument
from ferrule.report.sections import joined
from ferrule.report.surroundings import environment
from ferrule.report.sweep_document import SweepDocument

_VERDICTS = (*(verdict.value for verdict in Verdict), "failed")
"""From good to bad; "failed" is that of a sweep's run."""
_BAD = frozenset({"failed", *(verdict.value for verdict in Verdict if not verdict.agrees)})
_WORDS = {
    None: "",
    True: "significant: the intervals are apart",
    False: "not significant: the intervals overlap",
}
"""By whether a metric's change is significant."""
_KINDS: Mapping[str, Callable[[ChangePart], bool]] = {
    "proof": lambda change: change.counter == "proof",
    "metric": lambda change: change.scope == "metric",
    "run": lambda change: change.scope == "run",
}
"""What a comparison is about, as far as a document has it: at least one of each must be in both."""


def compare_documents(
    old: Document, new: Document, limits: Limits | None = None, *, other_model: bool = False
) -> Comparison:
    """Return what has changed.

    Without `limits`, only a verdict can be worse than allowed. `other_model` compares different models, too.

    Raises:
        FerruleError: the documents are of different kinds, of one that cannot be compared, or of different models; or
            `limits` names a counter that neither has.
    """
    limits = limits or Limits()
    if old.kind != new.kind:
        raise FerruleError(
            f"the old document is of kind '{old.kind}', the new one of kind '{new.kind}'",
            hint="two documents of one kind can be compared",
        )
    before, after = _side(old), _side(new)
    same_model = before.model == after.model or before.model_digest == after.model_digest != ""
    if not (same_model or other_model or old.kind == "sweep"):
        raise FerruleError(
            f"the old document is of the model '{before.model}', the new one of '{after.model}'",
            hint=f"{option('other_model')} compares them nevertheless",
        )
    found = list(_changes(measures(old), measures(new)))
    limits.check(change.counter for change in found)
    changes = tuple(_judged(change, limits) for change in found)
    both = [change for change in changes if change.old is not None and change.new is not None]
    layers, runs = ({change.place for change in both if change.scope == scope} for scope in ("layer", "run"))
    return Comparison(
        ferrule_version=VERSION,
        of=old.kind,
        old=before,
        new=after,
        limits={name: limit.text for name, limit in limits.by_counter.items()},
        differences=tuple(_differences(old.kind, before, after, found)),
        changes=changes,
        evidence=Evidence(elements=len(both), numbers=len(both), layers=len(layers), runs=len(runs)),
        uncompared=tuple(_uncompared(changes, both, limits)),
        environment=environment(),
    )


def _uncompared(changes: tuple[ChangePart, ...], both: list[ChangePart], limits: Limits) -> Iterator[str]:
    """Yield what only one document has, so that a comparison without it would show a success that nothing supports."""
    if not both:
        yield "The documents have no value in common."
    for what, of in _KINDS.items():
        if any(map(of, changes)) and not any(map(of, both)):
            yield f"No {what} is in both documents."
    for change in changes:
        if change.change is Change.REMOVED and change.scope == "metric":
            yield f"The new document lacks the metric '{change.counter}'."
        elif change.change is Change.REMOVED and change.scope == "whole" and change.counter in {"verdict", "proof"}:
            yield f"The new document lacks the {change.counter}."
    for name, limit in limits.by_counter.items():
        if not any(limits.of(change.scope, change.counter) is limit for change in both):
            yield f"The limit {name or 'of all counters'} ({limit.text}) has nothing to judge."


def measures(document: Document) -> list[Measure]:
    """Return the values that a document has, in its order; equal names are numbered."""
    seen: dict[tuple[str, str, str], int] = {}
    found = []
    for value in document.measures():
        if value.value is not None:
            number = seen[value.key] = seen.get(value.key, 0) + 1
            found.append(value if number == 1 else replace(value, place=f"{value.place} ({number})".strip()))
    return found


def _side(document: Document) -> SidePart:
    match document:
        case ReportDocument(build=build):
            return SidePart(
                model=document.model.name,
                model_digest=document.model.digest,
                file=document.model.file,
                board=build.board,
                engine=document.engine,
                toolchain=joined(build.toolchain_version, build.flags or build.optimization, by=" "),
                ferrule=document.ferrule_version,
            )
        case EvaluationDocument():
            side = SidePart(model="", ferrule="") if document.proof is None else _side(document.proof.report)
            return replace(
                side,
                model=document.model.name,
                model_digest=document.model.digest,
                file=document.model.file,
                ferrule=document.ferrule_version,
                data_digest=document.data.digest,
            )
        case Inspection():
            version = "" if document.environment is None else document.environment.ferrule
            return SidePart(model=document.name, ferrule=version)
        case SweepDocument():
            return SidePart(model=document.name, ferrule=document.ferrule_version)
        case QuantizationDocument() | SearchDocument():
            return SidePart(
                model=document.model.name,
                model_digest=document.model.digest,
                file=document.model.file,
                board=document.board if isinstance(document, SearchDocument) else "",
                ferrule=document.ferrule_version,
                data_digest=document.data.digest,
            )
        case _:
            raise FerruleError(
                f"a {document.kind} cannot be compared",
                hint="runs, inspections, evaluations, quantisations, searches and sweeps can",
            )


def _differences(kind: str, old: SidePart, new: SidePart, changes: list[ChangePart]) -> Iterator[str]:
    """Yield how the conditions differ, so that a reader does not take their effect for the model's.

    The name of a sweep is none of them: its runs are matched by their choices.
    """
    for what, before, after in (
        ("The model", old.model, new.model),
        ("The board", old.board, new.board),
        ("The engine", old.engine, new.engine),
        ("The compiler", old.toolchain, new.toolchain),
        ("Ferrule", old.ferrule, new.ferrule),
    ):
        if before != after and (kind, what) != ("sweep", "The model"):
            yield f"{what} differs: {before or 'none'}, now {after or 'none'}."
    if old.model_digest != new.model_digest and old.model == new.model:
        yield "The model's contents differ: its digest is another one."
    if old.data_digest != new.data_digest:
        yield "The data differ: the metrics are those of other samples."
    counts = [each for each in changes if each.scope == "whole" and each.counter in {"instructions", "cycles"}]
    if {Change.REMOVED, Change.ADDED} <= {each.change for each in counts}:
        yield "One counts instructions and the other cycles, so that these are not compared."
    if {Change.REMOVED, Change.ADDED} & {
        each.change for each in changes if (each.scope, each.counter) == ("whole", "milliseconds")
    }:
        yield "Only one of them states milliseconds, so that these are not compared."


def _changes(old: list[Measure], new: list[Measure]) -> Iterator[ChangePart]:
    """Yield the changes in the order of the new document, and what it lacks after them, by scope."""
    left = {value.key: value for value in old}
    renamed = _renamed(old, new)
    for value in new:
        was = renamed.get(value.place, value.place)
        other = left.pop((value.scope, was, value.counter), None)
        yield _change(other, value, "" if was == value.place else f"was '{was}'")
    yield from (_change(value, None, "") for value in left.values())


def _renamed(old: list[Measure], new: list[Measure]) -> dict[str, str]:
    """Return the old name of each layer that has another name now, by the new one.

    A layer counts as renamed if those between the same neighbours are of the same types, one for one.
    """
    before, after = ({each.place: each.kind for each in found if each.scope == "layer"} for found in (old, new))
    names, now = list(before), list(after)
    found: dict[str, str] = {}
    for kind, start, end, first, last in SequenceMatcher(None, names, now, autojunk=False).get_opcodes():
        were, are = names[start:end], now[first:last]
        moved = {*were} & after.keys() or {*are} & before.keys()
        if kind == "replace" and not moved and [before[name] for name in were] == [after[name] for name in are]:
            found |= zip(are, were, strict=True)
    return found


def _change(old: Measure | None, new: Measure | None, note: str) -> ChangePart:
    value = new or old
    assert value is not None
    before, after = None if old is None else old.value, None if new is None else new.value
    relative = None
    if isinstance(before, (int, float)) and isinstance(after, (int, float)) and before:
        relative = (after - before) / abs(before)
    return part_of(
        ChangePart,
        value,
        old=before,
        new=after,
        relative=relative,
        change=Change.OTHER if note and before == after else _state(old, new),
        note=joined(note, _WORDS[_significant(old, new)], by="; "),
        significant=_significant(old, new),
    )


def _state(old: Measure | None, new: Measure | None) -> Change:
    if old is None or new is None:
        return Change.ADDED if old is None else Change.REMOVED
    before, after = old.value, new.value
    if before == after:
        return Change.EQUAL
    if isinstance(before, str) and isinstance(after, str):
        if before not in _VERDICTS or after not in _VERDICTS:
            return Change.OTHER
        return Change.WORSE if _VERDICTS.index(after) > _VERDICTS.index(before) else Change.BETTER
    if isinstance(before, str) or isinstance(after, str) or before is None or after is None or not new.better:
        return Change.OTHER
    return Change.BETTER if (after > before) == (new.better == "higher") else Change.WORSE


def _significant(old: Measure | None, new: Measure | None) -> bool | None:
    """Return whether the intervals of a metric are apart; None without a change or two intervals."""
    if old is None or new is None or old.interval is None or new.interval is None or old.value == new.value:
        return None
    return old.interval[1] < new.interval[0] or new.interval[1] < old.interval[0]


def _judged(change: ChangePart, limits: Limits) -> ChangePart:
    if change.counter in {"verdict", "proof"}:
        bad = change.new in _BAD and change.change in {Change.WORSE, Change.ADDED}
        return replace(change, failed=bad)
    limit = limits.of(change.scope, change.counter)
    if limit is None:
        return change
    if change.change is Change.REMOVED and change.scope != "layer":
        return replace(change, limit=limit.text, failed=True, note="it cannot be compared with its limit")
    # a counter without a better direction may not change either if the user has named it
    is_named = change.counter.lower() in limits.by_counter
    directed = change.change is Change.WORSE or (change.change is Change.OTHER and is_named)
    old, new = change.old, change.new
    if not directed or not isinstance(old, (int, float)) or not isinstance(new, (int, float)):
        return change
    return replace(change, limit=limit.text, failed=limit.exceeded(old, new))
