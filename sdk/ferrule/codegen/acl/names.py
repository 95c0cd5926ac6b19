# SPDX-License-Identifier: Apache-2.0
"""The names of a class's members: `_name` and `get_name()`, as the seed (S4) has them, from the names of tensors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ferrule.errors import FerruleError
from ferrule.graph.names import UniqueNames
from ferrule.rendering.c_text import CPP_KEYWORDS

_LONGEST = 40
_CLASS = re.compile(r"(?!get_)[A-Za-z][A-Za-z0-9_]{0,99}")
_TAKEN = frozenset({"acl_parameters", "afterLayer", "arm_compute", "getInput", "getOutput", "Inference", "main", "std"})
"""Names of the class's methods, and of namespaces and functions beside it."""


def check_class_name(name: str) -> None:
    """Raise FerruleError if a class and its files cannot have this name."""
    if not _CLASS.fullmatch(name) or "__" in name or name in CPP_KEYWORDS | _TAKEN:
        raise FerruleError(
            f"the class cannot be named {name!r}",
            hint="use a name that no method has, of at most 100 characters, without two underscores in a row, such "
            "as AclArtifact",
        )


def plain(name: str) -> str:
    """Return a name of letters, digits and single underscores.

    It begins with a small letter or a digit, since names such as `_Name` and `a__b` are reserved in C++. TensorFlow
    Lite joins the names of operators that it fused by semicolons; the last one is used.
    """
    name = name.rsplit(";", 1)[-1] or name
    text = re.sub(r"[^0-9A-Za-z]+", "_", name).strip("_")
    if len(text) > _LONGEST:
        text = text[-_LONGEST:].partition("_")[2] or text[-_LONGEST:]  # from the start of a word
    if not text:
        return "tensor"
    return text[0].lower() + text[1:]


def member_names(tensors: Iterable[str], names: UniqueNames) -> Mapping[str, str]:
    """Return the attribute of each tensor, different from each other and from those in `names`."""
    return {tensor: names.take(f"_{plain(tensor)}") for tensor in tensors}
