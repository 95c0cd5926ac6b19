# SPDX-License-Identifier: Apache-2.0
"""The commands of Woofles: 40 little-endian words in memory, the last of which is a checksum."""

from __future__ import annotations

import struct
from dataclasses import fields
from enum import IntEnum

from ferrule._frozen import frozen
from ferrule.errors import FerruleError

WORDS = 40
COMMAND_BYTES = 4 * WORDS
_MASK = 0xFFFF_FFFF


class Operation(IntEnum):
    """The operation of a command, on int8 with TensorFlow Lite Micro's arithmetic."""

    ADD = 1
    """output = input + second, element by element."""
    MUL = 2
    """output = input * second, element by element."""
    FULLY_CONNECTED = 3
    """output[count, output_channels] = input[count, input_channels] x second[output_channels, input_channels]."""
    CONV_2D = 4
    """A convolution of `count` NHWC images with OHWI weights."""


class CommandError(FerruleError):
    """Woofles does not accept a command."""


class ShapeError(CommandError):
    """The sizes of a command are out of range or do not match."""


@frozen
class Command:
    """One command. The members have the order of the words in memory; addresses are bus addresses in bytes."""

    operation: int
    sequence: int = 0
    """Any number; the register SEQUENCE contains it once the command is done."""
    input: int = 0
    second: int = 0
    """Address of the other operand, or of the weights."""
    bias: int = 0
    """Address of an int32 per output channel; 0 if there is no bias."""
    output: int = 0
    multipliers: int = 0
    """Address of an int32 per output channel."""
    shifts: int = 0
    """Address of an int32 per output channel; a positive number shifts to the left."""
    count: int = 1
    """Number of elements of ADD and MUL, rows of FULLY_CONNECTED, or images of CONV_2D."""
    input_zero_point: int = 0
    second_zero_point: int = 0
    output_zero_point: int = 0
    activation_min: int = -128
    activation_max: int = 127
    left_shift: int = 0
    """Shift of both operands of ADD before they are scaled."""
    input_multiplier: int = 0
    input_shift: int = 0
    second_multiplier: int = 0
    second_shift: int = 0
    output_multiplier: int = 0
    output_shift: int = 0
    input_height: int = 1
    input_width: int = 1
    input_channels: int = 1
    output_height: int = 1
    output_width: int = 1
    output_channels: int = 1
    kernel_height: int = 1
    kernel_width: int = 1
    stride_height: int = 1
    stride_width: int = 1
    dilation_height: int = 1
    dilation_width: int = 1
    padding_top: int = 0
    padding_left: int = 0

    def encode(self) -> bytes:
        """Return the bytes of the command in memory; FerruleError if a member does not fit into 32 bits."""
        words = [getattr(self, field.name) for field in fields(self)]
        for field, word in zip(fields(self), words, strict=True):
            if not -(1 << 31) <= word <= _MASK:
                raise FerruleError(f"{field.name} of a command is {word}, expected 32 bits")
        words = [word & _MASK for word in words]
        words += [0] * (WORDS - 1 - len(words))
        return struct.pack(f"<{WORDS}I", *words, checksum(words))

    @classmethod
    def decode(cls, data: bytes) -> Command:
        """Return the command that `encode` has turned into bytes.

        Raises:
            CommandError: the checksum is wrong, the operation unknown, or a reserved word is not zero.
        """
        words = struct.unpack(f"<{WORDS}I", data)
        if words[-1] != checksum(words[:-1]):
            raise CommandError("the checksum of a command is wrong")
        names = fields(cls)
        if any(words[len(names) : -1]):
            raise CommandError("a reserved word of a command is not zero")
        signed = struct.unpack(f"<{WORDS}i", data)
        values = {
            field.name: words[index] if field.name in UNSIGNED else signed[index] for index, field in enumerate(names)
        }
        command = cls(**values)
        if command.operation not in set(Operation):
            raise CommandError(f"there is no operation {command.operation}")
        return command


UNSIGNED = frozenset({"operation", "sequence", "input", "second", "bias", "output", "multipliers", "shifts"})
"""Names of the members that are unsigned; the others are signed."""


def checksum(words: list[int] | tuple[int, ...]) -> int:
    """Return the checksum of a command's other words: their inverted sum modulo 2^32."""
    return ~sum(words) & _MASK
