# SPDX-License-Identifier: Apache-2.0
"""Describes a model that is refused: every operator that blocks, the reasons with their counts, and the remedies."""

from __future__ import annotations

import re
from collections import Counter

from ferrule._frozen import frozen
from ferrule.errors import FerruleError
from ferrule.report.base import part_of
from ferrule.report.failure_document import ProblemPart
from ferrule.report.sections import Part, Table, names, numbers

SCHEMA_VERSION = 2
_QUOTED = re.compile(r"'[^']*'")
_LONGEST_NAME = 40
_HINT = "replace this part of the model before it is converted, or run it outside of the model"


@frozen
class ReasonPart:
    """One reason, with the number of places that it blocks."""

    type: str
    reason: str
    """The reason, with '...' in place of names."""
    hint: str
    """What would unblock it."""
    count: int


@frozen
class RefusedModel:
    """A model that cannot be used: the output of `ferrule inspect` in place of an inspection."""

    kind: str = "refusal"
    schema_version: int = SCHEMA_VERSION
    model: str
    """The name of the file."""
    problems: tuple[ProblemPart, ...]
    """Everything that blocks, in the order of the file."""
    reasons: tuple[ReasonPart, ...]
    """The different reasons, the most frequent first."""

    def sections(self) -> Part:
        """Return the reasons, and what blocks."""
        reasons = [(each.count, each.type, each.reason, each.hint) for each in self.reasons]
        title = f"{self.model} is refused for {len(self.reasons)} reasons"
        places = [(str(at), _shortened(each.place), _shortened(each.reason)) for at, each in enumerate(self.problems)]
        return Part(
            self.model,
            (
                Table(title, (*numbers("count"), *names("type"), "reason", "what would unblock it"), reasons),
                Table("", (*numbers("#"), "what blocks", "reason"), places),
            ),
        )


def refused_model(model: str, error: FerruleError) -> RefusedModel:
    """Return the description of a model that was refused with `error`, which has `problems`."""
    problems = tuple(
        part_of(ProblemPart, each, place=each.place.removeprefix(f"{model}: "), hint=each.hint or _HINT)
        for each in error.problems
    )
    counts = Counter((each.type, _QUOTED.sub("'...'", each.reason), each.hint) for each in problems)
    return RefusedModel(
        model=model,
        problems=problems,
        reasons=tuple(
            ReasonPart(type=type_, reason=reason, hint=hint, count=count)
            for (type_, reason, hint), count in counts.most_common()
        ),
    )


def _shortened(text: str) -> str:
    """Return a text with the middle of each long name in quotes left out."""
    half = _LONGEST_NAME // 2
    return _QUOTED.sub(
        lambda name: name[0] if len(name[0]) <= _LONGEST_NAME else f"{name[0][:half]}...{name[0][-half:]}", text
    )
