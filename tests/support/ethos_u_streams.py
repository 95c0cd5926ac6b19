# SPDX-License-Identifier: Apache-2.0
"""Command streams of Ethos-U, written by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from ferrule.backends.ethos_u.commands import Elementwise, Kind, Long, Short
from ferrule.backends.ethos_u.configuration import ARCH_ID, Configuration, configuration

U55 = configuration("ethos-u55-128")
SCRATCH = 1
SIGNED_BYTES = 1
"""IFM_PRECISION and OFM_PRECISION of int8 in NHWC order."""


def short(code: Short | Kind, value: int = 0) -> list[int]:
    """Return a command without payload."""
    return [int(code) | (value & 0xFFFF) << 16]


def long(code: Long, value: int) -> list[int]:
    """Return a command with payload."""
    return [int(code) | 0x4000 | (value >> 32 & 0xFFFF) << 16, value & 0xFFFF_FFFF]


def settings(values: Mapping[Short | Long, int]) -> list[int]:
    """Return the commands that set registers."""
    return [word for code, value in values.items() for word in _setting(code, value)]


def _setting(code: Short | Long, value: int) -> list[int]:
    return short(code, value) if isinstance(code, Short) else long(code, value)


def stop(mask: int = 0xFFFF) -> list[int]:
    """Return the end of a stream."""
    return short(Kind.STOP, mask)


def copy(source: int, target: int, size_bytes: int) -> list[int]:
    """Return a copy within the scratch, and the wait for it."""
    values: dict[Short | Long, int] = {
        Short.DMA0_SRC_REGION: SCRATCH,
        Short.DMA0_DST_REGION: SCRATCH,
        Long.DMA0_SRC: source,
        Long.DMA0_DST: target,
        Long.DMA0_LEN: size_bytes,
    }
    return [*settings(values), *short(Kind.DMA_START), *short(Kind.DMA_WAIT)]


def maximum(first: int, second: int, output: int, count: int) -> list[int]:
    """Return the larger of each pair of int8 in the scratch."""
    values: dict[Short | Long, int] = {Short.ACTIVATION_MIN: -128, Short.ACTIVATION_MAX: 127}
    for name, start in (("IFM", first), ("IFM2", second), ("OFM", output)):
        values |= {
            Short[f"{name}_REGION"]: SCRATCH,
            Short[f"{name}_PRECISION"]: SIGNED_BYTES,
            Short[f"{name}_WIDTH0_M1"]: count - 1,
            Short[f"{name}_HEIGHT0_M1"]: 0,
            Short[f"{name}_HEIGHT1_M1"]: 0,
            Long[f"{name}_BASE0"]: start,
            Long[f"{name}_STRIDE_X"]: 1,
            Long[f"{name}_STRIDE_Y"]: count,
            Long[f"{name}_STRIDE_C"]: 1,
        }
    values |= {Short.OFM_HEIGHT_M1: 0, Short.OFM_WIDTH_M1: count - 1, Short.OFM_DEPTH_M1: 0, Short.IFM_DEPTH_M1: 0}
    values |= {Long.OFM_SCALE: 1}
    return [*settings(values), *short(Kind.ELEMENTWISE, Elementwise.MAX)]


def payload(commands: Iterable[int], compiled_for: Configuration = U55) -> bytes:
    """Return commands with the header that Vela writes."""
    words = list(commands)
    length = len(words)
    header = [0x31504F43, 0x01, compiled_for.register, ARCH_ID, 5, 5, 5]
    header.append(0x02 | (length & 0xFFFF) << 16 | (length >> 16) << 8)
    return np.array([*header, *words], "<u4").tobytes()
