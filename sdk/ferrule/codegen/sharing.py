# SPDX-License-Identifier: Apache-2.0
"""Lets layers share equal constants, as the steps of an unrolled LSTM have, so that flash holds them once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from ferrule.backends.firmware import Blob, LoweredOp
from ferrule.dom import Identifier

_T = TypeVar("_T")


def with_shared_constants(ops: Sequence[LoweredOp]) -> list[LoweredOp]:
    """Return lowered layers of which each refers to the first of equal constants, at the largest of their alignments.

    Constants are equal if their elements have the same type and the same bytes. Layers that share none stay the same.
    """
    groups: dict[tuple[str, bytes], list[Blob]] = {}
    for op in ops:
        for blob in op.blobs:
            groups.setdefault((blob.data.dtype.str, blob.data.tobytes()), []).append(blob)
    kept: dict[str, Blob] = {}
    for group in groups.values():
        blob = replace(group[0], alignment=max(each.alignment for each in group))
        kept |= dict.fromkeys((each.name for each in group), blob)
    names = {name: blob.name for name, blob in kept.items() if name != blob.name}
    return [_sharing(op, kept, names) for op in ops] if names else list(ops)


def stored_bytes(blobs_by_layer: Mapping[str, Iterable[Blob]]) -> dict[str, int]:
    """Return the bytes of constants by layer; those that layers share count for the first."""
    seen: set[str] = set()
    found = {}
    for layer, blobs in blobs_by_layer.items():
        new = {blob.name: blob.data.nbytes for blob in blobs if blob.name not in seen}
        seen |= new.keys()
        found[layer] = sum(new.values())
    return found


def _sharing(op: LoweredOp, kept: Mapping[str, Blob], names: Mapping[str, str]) -> LoweredOp:
    blobs = {blob.name: blob for blob in (kept[each.name] for each in op.blobs)}
    own = {each.name: names[each.name] for each in op.blobs if each.name in names}
    return replace(
        op,
        blobs=tuple(blobs.values()),
        statements=_renamed(op.statements, own),
        declarations=_renamed(op.declarations, own),
        feed=_renamed(op.feed, own),
        status=_renamed(op.status, own),
        start=_renamed(op.start, own),
    )


def _renamed(node: _T, names: Mapping[str, str]) -> _T:
    """Return a part of a document with other identifiers; what has none of them stays the same object."""
    found: Any = node
    if isinstance(node, Identifier):
        found = Identifier(names[node.name]) if node.name in names else node
    elif isinstance(node, tuple):
        parts = [_renamed(each, names) for each in node]
        found = tuple(parts) if any(new is not old for new, old in zip(parts, node, strict=True)) else node
    elif is_dataclass(node) and not isinstance(node, type):
        changed = {}
        for each in fields(node):
            old = getattr(node, each.name)
            new = _renamed(old, names)
            if new is not old:
                changed[each.name] = new
        found = replace(node, **changed) if changed else node
    return found  # type: ignore[no-any-return]
