# SPDX-License-Identifier: Apache-2.0
"""The search for the layers to which a stream owes that it differs from the reference."""

from __future__ import annotations

from collections.abc import Callable

from ferrule._frozen import frozen
from ferrule.graph import SubgraphView

Judge = Callable[[SubgraphView], str]
"""Compiles a subgraph and returns what is wrong with its stream; "" if it passes, or if there is no stream."""


@frozen
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

    def search(passing: int, failing: int, part: Callable[[int], tuple[str, ...]]) -> int:
        """Return the place next to one that passes, from which on, or up to which, layers still fail."""
        nonlocal count, wrong
        while abs(failing - passing) > 1:
            middle = (passing + failing) // 2
            count += 1
            found = judge(SubgraphView.of(view.graph, part(middle)))
            if found:
                failing, wrong = middle, found
            else:
                passing = middle
        return failing

    end = search(0, len(names), lambda middle: names[:middle])
    first = search(end, 0, lambda middle: names[middle:end])
    return Culprits(names=names[first:end], wrong=wrong, compilations=count)
