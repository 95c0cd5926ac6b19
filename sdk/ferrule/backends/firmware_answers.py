# SPDX-License-Identifier: Apache-2.0
"""Checks of what the firmware face of a backend returns, beyond the types and the rules of each field."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache

from ferrule.backends.conforming import ALIGNMENT, IDENTIFIER, LAST_ADDRESS, UINT32
from ferrule.backends.firmware import (
    SCALARS,
    Blob,
    DeviceDriver,
    LoweredOp,
    LoweringContext,
    PlacedTensor,
)
from ferrule.dom import Class, ClassType, Construct, QualifiedName, Reference

_HEADER = re.compile(r"[^\"<>\s]+")
_ELEMENTS = tuple(sorted(SCALARS, key=str))


def wrong_operator(op: LoweredOp, context: LoweringContext) -> Iterator[str]:
    """Yield what is wrong with the values of a lowered layer, whose types are right."""
    if op.start is not None and op.status is None:
        yield "start is set without a status, expected both: the status for when nothing runs beside the operator"
    yield from _wrong_code((op.statements, op.declarations, op.status, op.start))
    for index, blob in enumerate(op.blobs):
        yield from _wrong_blob(f"blobs[{index}] ('{blob.name}')", blob, context.prefix)
    for name, count in Counter(blob.name for blob in op.blobs).items():
        if count > 1:
            yield f"blobs has {count} arrays with the name '{name}', expected different names"
    yield from _wrong_sharing(op, context)
    yield from _wrong_places(op, context)
    yield from _wrong_scratches(op)
    yield from _wrong_headers("headers", op.headers)
    yield from itertools.chain.from_iterable(each.missing() for each in op.contributions)


def _wrong_code(code: object) -> Iterator[str]:
    found = next(_foreign_in(code), None)
    if found is not None:
        yield f"its code has {found}, which C does not have"


def _foreign_in(value: object) -> Iterator[str]:
    """Yield the parts of a program that are not C: classes and what only programs with classes have."""
    match value:
        case Class(name=name) | ClassType(name=name):
            yield f"class '{name}'"
        case Construct(type=ClassType(name=name)):
            yield f"a new object of class '{name}'"
        case QualifiedName(namespace, name):
            yield f"the name '{name}' in '{'::'.join(namespace)}'"
        case Reference():
            yield "a reference"
        case tuple():
            for part in value:
                yield from _foreign_in(part)
        case _:
            kind: type = type(value)
            for name in _field_names(kind):
                yield from _foreign_in(getattr(value, name))


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind)) if is_dataclass(kind) else ()


def _wrong_sharing(op: LoweredOp, context: LoweringContext) -> Iterator[str]:
    """Yield what is wrong with the storage that inputs and outputs share."""
    layer, graph = context.layer, context.graph
    computed = tuple(name for name in layer.present_inputs if not graph.tensor(name).is_constant)
    for index, overlap in enumerate(op.overlaps):
        if overlap.output not in layer.outputs or overlap.input not in computed:
            yield (
                f"overlaps[{index}] is for output '{overlap.output}' and input '{overlap.input}', expected one of "
                f"{list(layer.outputs)} and one of {list(computed)}"
            )
        if overlap.step_bytes < 1:
            yield f"overlaps[{index}] has a step_bytes of {overlap.step_bytes}, expected 1 or more"
    if op.feed is not None and (len(computed) != 1 or op.status is None):
        yield f"feed is set with the inputs {list(computed)}, expected one input that is not a constant, and a status"
    if op.view_of is None:
        return
    if op.view_of not in computed:
        yield f"view_of is '{op.view_of}', expected an input of the layer that is not a constant: {list(computed)}"
    elif len(layer.outputs) != 1:
        yield f"view_of is '{op.view_of}' for {len(layer.outputs)} outputs, expected a layer with one"
    elif graph.info(op.view_of).size_bytes != graph.info(layer.outputs[0]).size_bytes:
        sizes = [graph.info(name).size_bytes for name in (op.view_of, layer.outputs[0])]
        yield f"view_of is '{op.view_of}' of {sizes[0]} B for an output of {sizes[1]} B, expected the same size"
    if op.statements or op.status is not None:
        yield "view_of is set beside statements or a status, expected no code"


def _wrong_places(op: LoweredOp, context: LoweringContext) -> Iterator[str]:
    """Yield what is wrong with the tensors that an operator expects inside its scratch."""
    layer, graph = context.layer, context.graph
    computed = tuple(name for name in layer.present_inputs if not graph.tensor(name).is_constant)
    for index, each in enumerate(op.placed):
        path = f"placed[{index}] ('{each.tensor}')"
        if each.tensor not in (*computed, *layer.outputs):
            known = [*dict.fromkeys(computed), *layer.outputs]
            yield f"{path} is no tensor of the layer that is computed, expected one of {known}"
            return
        end = each.offset + graph.info(each.tensor).size_bytes
        if each.offset < 0 or end > op.scratch_bytes:
            yield f"{path} is at bytes {each.offset} to {end}, expected a place in the {op.scratch_bytes} B of scratch"
        size = graph.info(each.tensor).dtype.size_bytes
        if each.offset % size or op.scratch_alignment % size:
            yield (
                f"{path} is at byte {each.offset} of scratch aligned to {op.scratch_alignment}, "
                f"expected a multiple of the {size} B of an element"
            )
        if each.preserved and each.tensor in layer.outputs:
            yield f"{path} is an output that is preserved, expected that of inputs only"
        if any(each.tensor in (overlap.output, overlap.input) for overlap in op.overlaps):
            yield f"{path} is also named by overlaps, expected its place to say where it may overlap others"
    if op.placed and (op.view_of is not None or op.feed is not None):
        yield "placed is set beside view_of or feed, expected an operator with code that needs its inputs as a whole"
    for one, two in itertools.combinations(op.placed, 2):
        if one.tensor == two.tensor:
            yield f"placed has two places for '{one.tensor}', expected one"
        elif _meet(one, two, context) and (
            (one.tensor in layer.outputs) is (two.tensor in layer.outputs) or one.preserved or two.preserved
        ):
            yield (
                f"placed has '{one.tensor}' at byte {one.offset} and '{two.tensor}' at byte {two.offset}, which "
                "overlap, expected that only of an output and an input that is not preserved"
            )


def _wrong_scratches(op: LoweredOp) -> Iterator[str]:
    """Yield what is wrong with the scratch that an operator wants in memories by name."""
    for name, count in Counter(each.name.upper() for each in op.scratches).items():
        if count > 1:
            yield f"scratches has {count} entries with the name '{name.lower()}', expected different names"
    if op.scratches and op.view_of is not None:
        yield "scratches is set beside view_of, expected an operator with code"


def _meet(one: PlacedTensor, two: PlacedTensor, context: LoweringContext) -> bool:
    sizes = [context.graph.info(each.tensor).size_bytes for each in (one, two)]
    return one.offset < two.offset + sizes[1] and two.offset < one.offset + sizes[0]


def _wrong_blob(path: str, blob: Blob, prefix: str) -> Iterator[str]:
    if not IDENTIFIER.holds(blob.name) or not blob.name.startswith(prefix):
        yield f"{path}.name is '{blob.name}', expected a C identifier that starts with '{prefix}'"
    if blob.data.dtype.name not in _ELEMENTS:
        yield f"{path}.data is an array of {blob.data.dtype}, expected one of {', '.join(_ELEMENTS)}"
    if not blob.data.size:
        yield f"{path}.data is an array without elements, expected at least one"
    if not ALIGNMENT.holds(blob.alignment):
        yield f"{path}.alignment is {blob.alignment}, expected {ALIGNMENT.expected}"


def wrong_driver(driver: DeviceDriver) -> Iterator[str]:
    """Yield what is wrong with the values of a driver, whose types are right."""
    yield from _wrong_code((driver.context_declarations, driver.context_fields))
    yield from _wrong_headers("header", (driver.header,))
    if driver.copies_beside and not (driver.memory_bytes and driver.depth):
        yield (
            f"copies_beside is set with memory_bytes {driver.memory_bytes} and depth {driver.depth}, expected a device "
            "with its own memory and a depth of at least 1"
        )
    for index, part in enumerate(driver.reach):
        if part.size_bytes < 0 or part.offset_bytes < 0 or not IDENTIFIER.holds(f"_{part.storage}"):
            yield (
                f"reach[{index}] ({part.name}) has {part.size_bytes} B at offset {part.offset_bytes} of "
                f"'{part.storage}', expected 0 or more at 0 or more of the end of a C identifier"
            )
    if driver.base is not None and not UINT32.holds(driver.base):
        yield f"base is {driver.base:#x}, expected an address of 32 bits"
    if not 1 <= driver.window_bytes <= LAST_ADDRESS + 1 - (driver.base or 0):
        yield f"window_bytes is {driver.window_bytes}, expected 1 or more, up to the end of the addresses of 32 bits"
    if (driver.interrupt is not None or driver.handler) and not IDENTIFIER.holds(driver.handler):
        yield f"handler is '{driver.handler}', expected the C identifier of the interrupt's handler"
    yield from itertools.chain.from_iterable(each.missing() for each in driver.contributions)


def _wrong_headers(path: str, headers: Iterable[str]) -> Iterator[str]:
    for header in headers:
        if not _HEADER.fullmatch(header):
            yield f"{path} has '{header}', expected a path as in an #include, such as ferrule/kernels/conv2d.h"
