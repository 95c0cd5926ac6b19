# SPDX-License-Identifier: Apache-2.0
"""Parameters of which `make test-all` takes some, and `make nightly` all."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pytest


def some_of(values: Iterable[object], kept: Collection[object]) -> list[object]:
    """Return parameters: values that are not in `kept` are marked `nightly`; ValueError if `kept` has others.

    A value for several names is a tuple.
    """
    listed = list(values)
    unknown = [value for value in kept if value not in listed]
    if unknown:
        raise ValueError(f"{unknown} are not among the parameters")
    rows = [value if isinstance(value, tuple) else (value,) for value in listed]
    marks = [() if value in kept else (pytest.mark.nightly,) for value in listed]
    return [pytest.param(*row, marks=each) for row, each in zip(rows, marks, strict=True)]


def every(step: int, values: Iterable[object]) -> list[object]:
    """Return parameters: the first value, and then each `step`-th; the others are marked `nightly`."""
    listed = list(values)
    return some_of(listed, listed[::step])
