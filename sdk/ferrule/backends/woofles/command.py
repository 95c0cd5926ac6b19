# SPDX-License-Identifier: Apache-2.0
"""The commands of Woofles: 40 words in memory, little-endian, the last one a checksum."""

from __future__ import annotations

import struct
from dataclasses import dataclass, fields
from enum import IntEnum

from ferrule.errors import FerruleError

WORDS = 40
COMMAND_BYTES = 4 * WORDS
_MASK = 0xFFFF_FFFF


class Operation(IntEnum):
    """What a command does; all on int8, with TensorFlow Lite Micro's arithmetic."""

    ADD = 1
    """output = input + second, element by element."""
    MUL = 2
    """output = input * second, element by element."""
    FULLY_CONNECTED = 3
    """output[count, output_channels] = input[count, input_channels] x second[output_channels, input_channels]."""
    CONV_2D = 4
    """NHWC by OHWI, `count` images."""


class CommandError(FerruleError):
    """A command that Woofles does not take."""


class ShapeError(CommandError):
    """A command whose sizes make no sense together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command. The order of the members is that of the words; addresses are bus addresses in bytes."""

    operation: int
    sequence: int = 0
    """Any number; the register SEQUENCE shows it when the command is done."""
    input: int = 0
    second: int = 0
    """The other operand, or the weights."""
    bias: int = 0
    """int32 per output channel; 0 for none."""
    output: int = 0
    multipliers: int = 0
    """int32 per output channel."""
    shifts: int = 0
    """int32 per output channel, positive to the left."""
    count: int = 1
    """Elements of ADD and MUL, rows of FULLY_CONNECTED, images of CONV_2D."""
    input_zero_point: int = 0
    second_zero_point: int = 0
    output_zero_point: int = 0
    activation_min: int = -128
    activation_max: int = 127
    left_shift: int = 0
    """Of both operands of ADD, before they are scaled."""
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
        """Return the command as it lies in memory; FerruleError if a member does not fit 32 bits."""
        words = [getattr(self, field.name) for field in fields(self)]
        for field, word in zip(fields(self), words, strict=True):
            if not -(1 << 31) <= word <= _MASK:
                raise FerruleError(f"{field.name} of a command is {word}, expected 32 bits")
        words = [word & _MASK for word in words]
        words += [0] * (WORDS - 1 - len(words))
        return struct.pack(f"<{WORDS}I", *words, checksum(words))

    @classmethod
    def decode(cls, data: bytes) -> Command:
        """Return the command in some bytes.

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
"""The members that are numbers without a sign: addresses and the like."""


def checksum(words: list[int] | tuple[int, ...]) -> int:
    """Return the inverted sum of all words before the last, modulo 2^32."""
    return ~sum(words) & _MASK
