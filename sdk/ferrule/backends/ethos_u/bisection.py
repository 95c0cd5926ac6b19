# SPDX-License-Identifier: Apache-2.0
"""The search for the layers to which a stream owes that it differs from the reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ferrule.graph import SubgraphView

Judge = Callable[[SubgraphView], str]
"""Compiles a subgraph and returns what is wrong with its stream; "" if it passes, or if there is no stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprits:
    """Layers that are consecutive in the order of a graph, and whose stream differs."""

    names: tuple[str, ...]
    wrong: str
    """What is wrong with their stream."""
    compilations: int = 0
    """Streams that were compiled to find them."""

    @property
    def reason(self) -> str:
        """What is said about each of them."""
        count = f"{self.compilations} further compilation{'s' * (self.compilations != 1)}"
        found = f", as {count} found" if self.compilations else ""
        if len(self.names) == 1:
            return f"its stream is not used{found}: {self.wrong}"
        return f"a stream of '{self.names[0]}' to '{self.names[-1]}' is not used{found}: {self.wrong}"


def culprits(view: SubgraphView, wrong: str, judge: Judge) -> Culprits:
    """Return the shortest run of layers that the search finds in a subgraph whose stream is wrong.

    It cuts layers off the end, then off the beginning, by halves. That finds one run whose stream differs, and that
    passes without its last or without its first layer; it takes about twice the logarithm of the number of layers.
    """
    names = view.names
    count = 0

    def asked(first: int, end: int) -> str:
        nonlocal count
        count += 1
        return judge(SubgraphView.of(view.graph, names[first:end]))

    passing, end = 0, len(names)
    while end - passing > 1:
        middle = (passing + end) // 2
        found = asked(0, middle)
        if found:
            end, wrong = middle, found
        else:
            passing = middle
    first, passing = 0, end
    while passing - first > 1:
        middle = (first + passing) // 2
        found = asked(middle, end)
        if found:
            first, wrong = middle, found
        else:
            passing = middle
    return Culprits(names=names[first:end], wrong=wrong, compilations=count)
