# SPDX-License-Identifier: Apache-2.0
"""Counts the fields of an ONNX file before the package `onnx` makes objects of them: a node may be two bytes long."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ferrule.budget import Resource, afford

_FIELD_BYTES = 512
"""What a field takes as a part of a message and of our record of it; nodes and names take the most."""
_NUMBER_BYTES, _ELEMENT_BYTES = 40, 16
"""What a number of a list takes: as an object in a tuple, and as an element of a tensor."""
_SMALL_BYTES = 1 << 20
"""A file of this size cannot take more than half of the default limit by its fields, and is not counted."""
_OFTEN = 1 << 14
"""The fields between two comparisons with the budget."""
_VARINT, _BYTES = 0, 2
_FIXED = {1: 8, 5: 4}
"""The bytes of a number by its kind on the wire."""
_MESSAGE, _DOUBLE, _FLOAT = 11, 1, 2
_TYPES = {**dict.fromkeys((3, 4, 5, 8, 13, 14, 17, 18), 0), _DOUBLE: 8, 6: 8, 16: 8, _FLOAT: 4, 7: 4, 15: 4}
"""By FieldDescriptor.type: the bytes of an element of a list of numbers, 0 for varints."""
_WHAT = "the file's fields, such as nodes and attributes,"


class _Message(NamedTuple):
    """What the fields of a message are, by their numbers."""

    messages: dict[int, Any]
    """The descriptors of those that are messages."""
    lists: dict[int, int]
    """Those that may be lists of numbers, with the bytes of an element."""
    number_bytes: int


def afford_fields(data: bytes, descriptor: Any) -> None:  # noqa: ANN401 protobuf has no types
    """Raise BudgetError if the fields of a message take more memory than the present budget has.

    What is malformed ends the count: the parser refuses it. `descriptor` is that of the message.
    """
    if len(data) > _SMALL_BYTES:
        _Count(data).run(descriptor)


@cache
def _message_of(descriptor: Any) -> _Message:  # noqa: ANN401 as above
    fields = descriptor.fields_by_number.items()
    return _Message(
        messages={number: each.message_type for number, each in fields if each.type == _MESSAGE},
        lists={number: _TYPES[each.type] for number, each in fields if each.type in _TYPES},
        number_bytes=_ELEMENT_BYTES if descriptor.name == "TensorProto" else _NUMBER_BYTES,
    )


class _Count:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self._bytes = 0

    def run(self, descriptor: Any) -> None:  # noqa: ANN401 as above
        """Walk through all fields."""
        message, end, fields = _message_of(descriptor), len(self._data), 0
        outer: list[tuple[_Message, int]] = []
        while True:
            while self._position >= end:
                if not outer:
                    afford(Resource.BYTES, self._bytes, _WHAT)
                    return
                message, end = outer.pop()
            tag, fields = self._varint(), fields + 1
            self._bytes += _FIELD_BYTES
            if fields % _OFTEN == 0:
                afford(Resource.BYTES, self._bytes, _WHAT)
            number, wire = tag >> 3, tag & 7
            if wire == _VARINT:
                self._varint()
            elif wire in _FIXED:
                self._position += _FIXED[wire]
            elif wire != _BYTES:
                return
            else:
                size = self._varint()
                if number in message.messages:
                    outer.append((message, end))
                    message, end = _message_of(message.messages[number]), min(self._position + size, end)
                    continue
                if number in message.lists:
                    self._bytes += message.number_bytes * self._elements(size, message.lists[number])
                self._position += size

    def _elements(self, size: int, width: int) -> int:
        if width:
            return size // width
        numbers = np.frombuffer(
            self._data, np.uint8, max(0, min(size, len(self._data) - self._position)), self._position
        )
        return int(np.count_nonzero(numbers < 0x80))

    def _varint(self) -> int:
        """Return the number at the position; behind the end of the data, 0."""
        value = shift = 0
        for byte in self._data[self._position : self._position + 10]:
            self._position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        self._position = len(self._data)
        return 0
