# SPDX-License-Identifier: Apache-2.0
"""What every document states of itself: sections to read, rows for a table, and cases that passed or failed.

The renderers know documents by this class alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ferrule._frozen import frozen, positional
from ferrule.errors import FerruleError, MissingToolError
from ferrule.interface import either
from ferrule.report.html import html_fragment
from ferrule.report.sections import Part

if TYPE_CHECKING:
    from pandas import DataFrame

_Part = TypeVar("_Part")
Value = str | int | float | bool | None
Row = dict[str, Value]
"""By the name of the column; None if it is not known."""


class Outcome(StrEnum):
    """What became of a case, by the names of JUnit."""

    PASSED = "passed"
    FAILURE = "failure"
    ERROR = "error"
    SKIPPED = "skipped"


class Rule(StrEnum):
    """What is wrong with a case. The ids never change."""

    DIFFERENT = "different"
    NOTHING_COMPARED = "nothing-compared"
    DEVICE_CALLS = "device-calls"
    CRASH = "crash"
    ERROR = "error"
    REFUSED = "refused"
    FAILED_RUN = "failed-run"
    UNDEFINED_METRIC = "undefined-metric"
    OVER_BUDGET = "over-budget"
    OVER_DEADLINE = "over-deadline"
    UNPROVED_DEADLINE = "unproved-deadline"


@positional
class Case:
    """Something that a document judges."""

    name: str
    outcome: Outcome = Outcome.PASSED
    rule: Rule | None = None
    """What is wrong; None unless something is."""
    text: str = ""
    """What was found, or what is wrong; further lines are details."""
    type: str = ""
    """The type of an error, where it has another name than its rule."""
    seconds: float = 0.0
    model: str = ""
    """The name of the model that is wrong, if it is another one than the suite's."""
    file: str = ""
    """The same for its file."""
    layer: str = ""
    """The layer that is wrong, if it is known."""
    where: str = ""
    """What tells it from the same finding elsewhere, such as the board."""

    def failing(self, rule: Rule, text: str = "") -> Case:
        """Return the case as a failure; without another text, it keeps its own."""
        return replace(self, outcome=Outcome.FAILURE, rule=rule, text=text or self.text)


@frozen
class Suite:
    """The cases of a document."""

    name: str
    command: str
    """The command that makes such documents."""
    model: str
    """What the cases are about."""
    file: str = ""
    """The model's file, as in `ModelPart`."""
    cases: Sequence[Case]
    properties: dict[str, Value]
    """Those that are None or empty are left out."""
    seconds: float = 0.0


@positional
class Measure:
    """A value that comparisons match by name, with the place where it belongs."""

    counter: str
    value: float | int | str | None
    scope: str = "whole"
    """As in `ChangePart`."""
    place: str = ""
    kind: str = ""
    """The type of a layer."""
    unit: str = ""
    better: str = "lower"
    """"lower", "higher", or empty if neither is better."""
    interval: tuple[float, float] | None = None
    """The confidence interval of a metric."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What the same value has in another document."""
        return self.scope, self.place, self.counter


class Document(ABC):
    """A document, which notebooks show as a page."""

    __slots__ = ()

    kind: str

    @property
    def document(self) -> Document:
        """The document that its JSON has: itself, or one without the arrays that a subclass adds."""
        return self

    def to_json(self) -> str:
        """Return the document as indented JSON."""
        from ferrule.documents import json_text

        return json_text(self.document)

    @abstractmethod
    def sections(self) -> Part:
        """Return what the document shows."""

    def table_rows(self) -> Iterable[Row]:
        """Return the rows of a table; FerruleError if the document has none."""
        raise FerruleError(
            f"a {self.kind} has no rows",
            hint=either("write it as --html, --markdown or --json", "its attributes have what it says"),
        )

    def suite(self) -> Suite:
        """Return what the document judges; FerruleError if it has no verdict."""
        raise FerruleError(f"a document of kind '{self.kind}' has no verdict")

    def measures(self) -> Iterable[Measure]:
        """Return the values to compare, those of the whole first."""
        return ()

    def _repr_html_(self) -> str:
        return html_fragment(self)

    def to_dataframe(self) -> DataFrame:
        """Return the rows that CSV has, as a pandas data frame; texts are as they are, not quoted for a spreadsheet.

        Raises:
            FerruleError: the document has no rows.
            MissingToolError: pandas is not installed.
        """
        columns, rows = table([self])
        try:
            import pandas
        except ImportError as error:
            raise MissingToolError(
                "data frames need the Python package pandas", hint="pip install 'ferrule[pandas]'"
            ) from error
        return pandas.DataFrame(rows, columns=columns)


def part_of(kind: type[_Part], source: object, /, **others: Any) -> _Part:  # noqa: ANN401 a field's value
    """Return a part of a document with the values of a source's attributes of the same names, and with `others`."""
    known = {each.name: getattr(source, each.name) for each in fields(cast("Any", kind)) if hasattr(source, each.name)}
    return kind(**{**known, **others})


def table(documents: Sequence[Document]) -> tuple[list[str], list[Row]]:
    """Return the columns and the rows of documents; a row lacks the columns that do not apply to it.

    Raises:
        FerruleError: a document has no rows.
    """
    rows = [row for document in documents for row in document.table_rows()]
    return list(dict.fromkeys(name for row in rows for name in row)), rows


def flat(part: Any, **renamed: str) -> Row:  # noqa: ANN401 any dataclass
    """Return the fields of a part of a document that are texts, lists of texts or numbers, as a row.

    `renamed` has other names for columns, by field; a field whose name is empty is left out.
    """
    values = {renamed.get(each.name, each.name): getattr(part, each.name) for each in fields(part)}
    row: Row = {}
    for name, value in values.items():
        if name and (value is None or isinstance(value, str | int | float)):
            row[name] = value
        elif name and isinstance(value, tuple) and all(isinstance(each, str) for each in value):
            row[name] = ", ".join(value)
    return row
