# SPDX-License-Identifier: Apache-2.0
"""The text of include/ferrule/layers.h; `python -m ferrule.backends.dynamic.header` prints it."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import TypeVar

from ferrule.backends.dynamic.codes import ACTIVATION_CODES, TYPE_CODES
from ferrule.backends.dynamic.descriptors import DescriptorStruct, descriptor_structs
from ferrule.graph import LayerType

_WIDTH = 100

_Member = TypeVar("_Member", bound=StrEnum)

_TOP = """\
/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file Layer types, element types and descriptors as dynamic backends see them.
 *
 * Made by ferrule.backends.dynamic.header from the descriptors of the Python package; do not edit.
 * Numbers are never given to something else. Arrays of a descriptor belong to the host and last as
 * long as the call that they are handed to.
 */
#ifndef FERRULE_LAYERS_H
#define FERRULE_LAYERS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
"""

_PADDING = """\
/** Pixels around an image; they hold zero, the zero point for integers. */
struct ferrule_padding {
    int32_t top;
    int32_t bottom;
    int32_t left;
    int32_t right;
};
"""

_BOTTOM = """\
#ifdef __cplusplus
}
#endif

#endif /* FERRULE_LAYERS_H */
"""


def layers_header() -> str:
    """Return the header."""
    layers = {type_: type_.code for type_ in LayerType}
    parts = [
        _TOP,
        _enum("ferrule_data_type", "FERRULE_TYPE_", "What the elements of a tensor are.", TYPE_CODES),
        _enum("ferrule_layer_type", "FERRULE_LAYER_", "The operators, and what the optimizer adds.", layers),
        _enum("ferrule_activation", "FERRULE_ACTIVATION_", "A clamp that follows an operator.", ACTIVATION_CODES),
        _PADDING,
        *(_struct(struct) for struct in descriptor_structs().values() if struct.fields),
        _BOTTOM,
    ]
    return "\n".join(parts)


def _enum(name: str, prefix: str, doc: str, codes: Mapping[_Member, int]) -> str:
    rows = sorted(codes.items(), key=lambda row: row[1])
    lines = [f"/** {doc} */", f"enum {name} {{"]
    lines += [f"    {prefix}{member.name} = {code}," for member, code in rows]
    return "\n".join([*lines, "};", ""])


def _struct(struct: DescriptorStruct) -> str:
    users = ", ".join(struct.layers)
    lines = [*_comment(f"{users}. {struct.doc}", ""), f"struct {struct.c_name} {{"]
    for field in struct.fields:
        if field.doc:
            lines += _comment(field.doc, "    ")
        lines += [f"    {_declare(c_type, name)};" for c_type, name, _ in field.members()]
    return "\n".join([*lines, "};", ""])


def _declare(c_type: str, name: str) -> str:
    return f"{c_type}{name}" if c_type.endswith("*") else f"{c_type} {name}"


def _comment(text: str, indent: str) -> Iterator[str]:
    single = f"{indent}/** {text} */"
    if len(single) <= _WIDTH:
        yield single
        return
    yield f"{indent}/**"
    yield from _prefixed(textwrap.wrap(text, _WIDTH - len(indent) - 3), f"{indent} * ")
    yield f"{indent} */"


def _prefixed(lines: Iterable[str], prefix: str) -> Iterator[str]:
    return (prefix + line for line in lines)


if __name__ == "__main__":
    sys.stdout.write(layers_header())
