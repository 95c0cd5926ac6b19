# SPDX-License-Identifier: Apache-2.0
"""Resolves `derivedFrom` of SVD files."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.devices.svd.xml_tree import Element

DERIVED = "derivedFrom"
_ENUMERATION = "enumeratedValues"
_CHAIN = 32
"""Longest chain of elements that derive from each other."""
_OWN = frozenset(
    {
        "name",
        "displayName",
        "dim",
        "dimIncrement",
        "dimIndex",
        "dimName",
        "dimArrayIndex",
        "alternateCluster",
        "alternateGroup",
        "alternatePeripheral",
        "alternateRegister",
    }
)
"""What an element does not inherit."""
_CONTAINERS = {"peripheral": "registers", "register": "fields", "device": "peripherals"}


class Derivation:
    """Elements of one file with the children that they inherit."""

    def __init__(self) -> None:
        self._done: dict[Element, Element] = {}
        self._open: set[Element] = set()
        self._names: dict[Element, dict[str, Element]] = {}
        self._below: dict[Element, dict[str, Element]] = {}

    def resolved(self, element: Element, scopes: Sequence[Element]) -> Element:
        """Return an element with its inherited children; `scopes` are the elements around it, the outermost first.

        Raises:
            FerruleError: the base does not exist, or an element derives from itself.
        """
        base_name = element.attributes.get(DERIVED)
        if base_name is None:
            return element
        if (done := self._done.get(element)) is not None:
            return done
        if element in self._open:
            raise element.wrong(f"<{element.tag}> is derived from itself")
        if len(self._open) >= _CHAIN:
            raise element.wrong(f"the chain of {DERIVED} is longer than {_CHAIN}")
        self._open.add(element)
        try:
            base, around = self._base(element, base_name, scopes)
            base = self.resolved(base, around)
        finally:
            self._open.discard(element)
        own = {child.tag for child in element.children}
        inherited = [child for child in base.children if child.tag not in own and child.tag not in _OWN]
        made = Element(element.tag, element.line, {}, element.path, [*element.children, *inherited])
        self._done[element] = made
        return made

    def _base(self, element: Element, name: str, scopes: Sequence[Element]) -> tuple[Element, Sequence[Element]]:
        """Return the element from which another one derives, and the elements around it."""
        parts = name.split(".")
        if len(parts) <= 8:
            for depth in range(len(scopes), 0, -1):
                found = self._descend(element, parts, scopes[:depth])
                if found is not None:
                    return found
        if element.tag == _ENUMERATION:
            for depth in range(len(scopes), 1, -1):
                found_below = self._enumerations(scopes[depth - 1]).get(name)
                if found_below is not None and found_below is not element:
                    return found_below, scopes[:depth]
        raise element.wrong(f"<{element.tag}> is derived from '{name[:80]}', which does not exist")

    def _descend(
        self, element: Element, parts: Sequence[str], scopes: Sequence[Element]
    ) -> tuple[Element, Sequence[Element]] | None:
        around = list(scopes)
        found = self._by_name(around[-1]).get(parts[0])
        for part in parts[1:]:
            if found is None:
                return None
            around.append(self.resolved(found, around))
            found = self._by_name(around[-1]).get(part)
        return None if found is None or found is element or found.tag != element.tag else (found, around)

    def _enumerations(self, scope: Element) -> dict[str, Element]:
        """Return the enumerations below an element by name; vendors use them from other fields without a path."""
        if scope not in self._below:
            names = self._below[scope] = {}
            left = [scope]
            while left:
                each = left.pop()
                if each.tag == _ENUMERATION:
                    names.setdefault(each.words("name"), each)
                left += reversed(each.children)
        return self._below[scope]

    def _by_name(self, scope: Element) -> dict[str, Element]:
        if scope not in self._names:
            self._names[scope] = {child.words("name"): child for child in reversed(self._members(scope))}
        return self._names[scope]

    @staticmethod
    def _members(scope: Element) -> Sequence[Element]:
        container = _CONTAINERS.get(scope.tag)
        if container is None:
            return [each for each in scope.children if each.tag in {"register", "cluster", _ENUMERATION}]
        inner = scope.child(container)
        return () if inner is None else inner.children
