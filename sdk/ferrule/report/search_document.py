# SPDX-License-Identifier: Apache-2.0
"""The results of a search for the best precision of each layer, as data, and what they show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from itertools import groupby

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.graph import brief
from ferrule.report.base import Case, Document, Measure, Outcome, Row, Rule, Suite, flat
from ferrule.report.document import ModelPart, Verdict
from ferrule.report.evaluation_document import BETTER, DataPart, EvaluationDocument
from ferrule.report.picture import EnvironmentPart, surroundings
from ferrule.report.sections import (
    Align,
    Cell,
    Column,
    Conclusion,
    Part,
    Picture,
    State,
    Table,
    Text,
    interval,
    joined,
    names,
    number,
    numbers,
    part,
    plural,
)
from ferrule.report.tradeoff import Axis, Choice, Mark, Tradeoff, tradeoff_picture
from ferrule.timing.energy import digits_text

SEARCH_SCHEMA_VERSION = 1
_COSTS = {"ms": ("time", "ms"), "flash": ("flash", "B"), "ram": ("RAM", "B")}
"""By the budget's names: those of the axes of a chart, and their units."""


@frozen
class TrialPart:
    """A setting that was tried. What it takes of the board is planned, without a build."""

    setting: tuple[str, ...]
    """The precision of each block of layers, in their order."""
    metric: float | None = None
    """On the samples by which settings are chosen; None without labels."""
    noise: float | None = None
    """The root mean square of the output's differences from the float model, by that of its values."""
    flash: int | None = None
    """Bytes, without the code."""
    ram: int | None = None
    ms: float | None = None
    """Milliseconds; None if the board's core has no table of its kernels."""
    exceeds: tuple[str, ...] = ()
    """What of the budget it exceeds."""
    front: bool = False
    """Whether no other trial is as good in the metric and in all that the budget names, and better in one."""
    problem: str = ""
    """Why it cannot be built; usually empty."""
    model: str = ""
    """The name of the model."""

    @property
    def taken(self) -> dict[str, float | None]:
        """What it takes of the board, by the budget's names."""
        return {"flash": self.flash, "ram": self.ram, "ms": self.ms}

    @property
    def text(self) -> str:
        """The setting in few words: how many blocks in a row have which precision."""
        runs = [(name, len(list(group))) for name, group in groupby(self.setting)]
        return ", ".join(f"{count} {name}" for name, count in runs)


@frozen
class BlockPart:
    """Layers that get a precision together."""

    layers: tuple[str, ...]
    chosen: str
    """Its precision in the setting that was chosen; empty if none was."""


@frozen
class ResultPart:
    """A model on the samples by which nothing was chosen."""

    what: str
    """"float", "int8" or "chosen"."""
    metric: float | None
    low: float | None = None
    high: float | None = None
    noise: float | None = None


@frozen
class SearchDocument(Document):
    """All results of one search."""

    kind: str = "search"
    schema_version: int = SEARCH_SCHEMA_VERSION
    ferrule_version: str
    model: ModelPart
    """The one that was chosen; the first if none was."""
    models: tuple[ModelPart, ...] = ()
    """All among which the search chose, if there were several."""
    data: DataPart
    """The samples as this model gets them."""
    board: str
    budget: Mapping[str, float]
    """Bytes of "flash" and "ram", and "ms", of those that were named."""
    metric: str
    """By which settings are judged; empty for the noise of the outputs."""
    seed: int
    chosen_by: int
    """The number of samples by which settings were chosen."""
    reported_on: int
    """The number of the others, on which `results` are."""
    blocks: tuple[BlockPart, ...]
    trials: tuple[TrialPart, ...]
    """In their order."""
    results: tuple[ResultPart, ...] = ()
    measured: Mapping[str, float] = field(default_factory=dict)
    """What the chosen model takes once it is built and run, by the budget's names; empty if none was chosen."""
    rejected: tuple[str, ...] = ()
    """Settings that keep the budget as planned and exceed it once they are built and run, and by what."""
    proof: EvaluationDocument | None = None
    """The evaluation of the chosen model with the board; None if none was chosen."""
    environment: EnvironmentPart | None = None

    @property
    def chosen(self) -> bool:
        """Whether a setting is within the budget."""
        return self.proof is not None

    @property
    def verdict(self) -> Verdict | None:
        """That of the chosen model's proof; None if none was chosen."""
        return None if self.proof is None or self.proof.proof is None else self.proof.proof.verdict

    @override
    def measures(self) -> Iterator[Measure]:
        yield Measure("verdict", "failed" if self.verdict is None else self.verdict.value)
        better = BETTER.get(self.metric, "lower")
        for each in self.results:
            value, name = (each.metric, self.metric) if self.metric else (each.noise, "noise")
            interval = None if each.low is None or each.high is None or not self.metric else (each.low, each.high)
            yield Measure(f"{name} {each.what}", value, "metric", better=better, interval=interval)
        for kind, limit in self.budget.items():
            yield Measure(f"budget of {_COSTS[kind][0]}", limit, unit=_COSTS[kind][1], better="")
        yield from (Measure(_COSTS[kind][0], value, unit=_COSTS[kind][1]) for kind, value in self.measured.items())
        yield Measure("trials", len(self.trials), better="")
        for block in self.blocks:
            yield Measure("precision", block.chosen or None, "layer", joined(*block.layers))
        for trial in self.trials:
            if trial.front:
                place = joined(trial.model, trial.text)
                yield Measure(
                    self.metric or "noise", trial.metric if self.metric else trial.noise, "trial", place, better=better
                )
                for kind, value in trial.taken.items():
                    yield Measure(_COSTS[kind][0], value, "trial", place, unit=_COSTS[kind][1])

    @override
    def table_rows(self) -> Iterator[Row]:
        for each in self.trials:
            row = {"model": "", "row": "trial", "blocks": each.text, **flat(each)}
            yield row | {"model": each.model or self.model.name}

    @override
    def suite(self) -> Suite:
        case = Case("budget", text=self._sentence(), where=self.board)
        if not self.chosen:
            case = case.failing(Rule.OVER_BUDGET)
        cases = [case, *(() if self.proof is None or self.proof.proof is None else self.proof.proof.cases())]
        return Suite(
            name=f"search for {self.model.name}",
            command="quantize",
            model=self.model.name,
            file=self.model.file,
            cases=[each for each in cases if each.outcome is not Outcome.SKIPPED],
            properties={"board": self.board, "trials": len(self.trials), "ferrule": self.ferrule_version},
        )

    @override
    def sections(self) -> Part:
        about = f"{plural(len(self.trials), 'trial')} on {self.board}"
        return Part(
            joined(*(each.name for each in self.models)) or self.model.name,
            (
                part("Front", self._tradeoff(), self._front(about)),
                self._blocks(),
                self._results(),
                *self._measured(),
                self._conclusion(),
                surroundings(self.environment),
            ),
            what="Search",
            about=about,
        )

    def _front(self, about: str) -> Table:
        best = sorted((each for each in self.trials if each.front), key=self._rank)
        return Table(
            f"{about}: the front, as planned",
            (
                Column("model", Align.NAME, sparse=True),
                *names("blocks"),
                *(numbers(self.metric) if self.metric else ()),
                *numbers("noise", spare=1 if self.metric else 0),
                *numbers("ms", "flash, B", "RAM, B"),
                Column("exceeds", Align.NAME, sparse=True),
            ),
            [
                (
                    each.model if self.models else None,
                    each.text,
                    *((_text(each.metric),) if self.metric else ()),
                    _text(each.noise),
                    _text(each.ms),
                    each.flash,
                    each.ram,
                    Cell(joined(*each.exceeds), State.WARN) if each.exceeds else None,
                )
                for each in best
            ],
        )

    def _rank(self, trial: TrialPart) -> tuple[float, float]:
        sign = -1.0 if BETTER.get(self.metric) == "higher" else 1.0
        return (sign * (trial.metric or 0.0) if self.metric else 0.0, trial.noise or 0.0)

    def _tradeoff(self) -> Picture | None:
        """Return the chart of the trials as planned, and of the chosen one as it was built."""
        value = Axis(name=self.metric or "noise", better=BETTER.get(self.metric, "lower"))
        costs = [
            Axis(name=name, unit=unit, limit=self.budget.get(kind))
            for kind, (name, unit) in _COSTS.items()
            if kind in self.budget or any(each.taken[kind] is not None for each in self.trials)
        ]
        setting = tuple(block.chosen for block in self.blocks)
        chosen_by_name = {(self.model.name, setting), ("", setting)}  # older documents do not name it
        choices = [
            self._choice(each, value, chosen=self.chosen and (each.model, each.setting) in chosen_by_name)
            for each in self.trials
        ]
        chosen = next((each for each in choices if each.mark is Mark.CHOSEN), None)
        if chosen is not None and self.measured:
            measured = {_COSTS[kind][0]: amount for kind, amount in self.measured.items() if kind in _COSTS}
            choices.append(replace(chosen, values={**chosen.values, **measured}, mark=Mark.BUILT))
        table = Table(
            "the trials",
            (*names("blocks"), *numbers(value.name, *(axis.label for axis in costs)), *names("mark")),
            [
                (each.name, *(number(each.values.get(axis.name)) for axis in (value, *costs)), each.mark.value)
                for each in choices
            ],
        )
        return tradeoff_picture(Tradeoff(noun="trial", value=value, costs=costs, choices=choices, table=table))

    def _choice(self, trial: TrialPart, value: Axis, *, chosen: bool) -> Choice:
        known = {_COSTS[kind][0]: amount for kind, amount in trial.taken.items()}
        known[value.name] = trial.metric if self.metric else trial.noise
        mark = Mark.OVER if trial.exceeds else Mark.FRONT if trial.front else Mark.OTHER
        return Choice(
            name=joined(trial.model, trial.text) if self.models else trial.text,
            values={name: each for name, each in known.items() if each is not None},
            mark=Mark.CHOSEN if chosen else mark,
        )

    def _blocks(self) -> Part | None:
        if not self.chosen:
            return None
        of = f" of {self.model.name}" if self.models else ""
        rows = [(str(index), joined(*each.layers), each.chosen) for index, each in enumerate(self.blocks)]
        return part("Chosen", Table(f"the chosen setting{of}", (*numbers("#"), "layers", *names("precision")), rows))

    def _results(self) -> Part | None:
        rows = [
            (
                each.what,
                _text(each.metric),
                "" if each.low is None or each.high is None else f"{each.low:.4f} to {each.high:.4f}",
                interval(self.metric, each.metric, each.low, each.high),
                _text(each.noise),
            )
            for each in self.results
        ]
        columns = (
            *names("model"),
            *numbers(self.metric or "metric"),
            Column("interval", sparse=True, spare=2),
            Column("", Align.DRAWN, sparse=True),
            *numbers("noise", spare=1 if self.metric else 0),
        )
        title = f"on the {plural(self.reported_on, 'sample')} by which nothing was chosen"
        return part("Results", Table(title, columns, rows)) if rows else None

    def _measured(self) -> Iterator[Text]:
        failed = [each for each in self.trials if each.problem]
        if failed:
            yield Text(failed[0].problem, f"{plural(len(failed), 'setting')} could not be built")
        if self.rejected:
            yield Text("settings that exceed the budget once they are built", "rejected", items=self.rejected)
        if not self.chosen:
            yield Text(self._sentence(), items=tuple(self._least()))
        if self.measured:
            items = [f"{_amount(name, value)} of {self.budget[name]:,.6g}" for name, value in self.measured.items()]
            yield Text(joined(*items), "built and run")

    def _least(self) -> Iterator[str]:
        """Yield the least that any setting takes of what the budget names."""
        for kind in self.budget:
            known = [value for each in self.trials if (value := each.taken[kind]) is not None]
            if known:
                yield f"the least planned: {_amount(kind, min(known))}"

    def _sentence(self) -> str:
        asked = joined(*(_amount(*each) for each in self.budget.items()))
        if self.chosen:
            return f"The chosen setting keeps {asked} on {self.board}."
        return f"None of {plural(len(self.trials), 'setting')} keeps {asked} on {self.board}."

    def _conclusion(self) -> Conclusion:
        if not self.chosen:
            return Conclusion("over budget", State.BAD, self._sentence())
        verdict = self.verdict
        if verdict is None:
            return Conclusion("not proved", State.WARN, self._sentence())
        return Conclusion(verdict.words, verdict.state, self._sentence())

    @override
    def __repr__(self) -> str:
        return f"<{type(self).__name__} {brief(self.model.name)}: {len(self.trials)} trials on {self.board}>"


def _amount(kind: str, value: float) -> str:
    """Return what is taken of a budget, or its limit, with its name and unit."""
    name, unit = _COSTS[kind]
    return f"{name} {digits_text(value, 4)} {unit}"


def _text(value: float | None) -> str:
    return "" if value is None else digits_text(value, 4)
