# SPDX-License-Identifier: Apache-2.0
"""The duration of operations, in cycles: Vela's estimate where it is known, else one from the operation itself.

Neither is measured: nothing here was compared with silicon.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections import OrderedDict
from collections.abc import Mapping

from ferrule.backends.ethos_u.commands import Kind, Long, Pool, Short
from ferrule.backends.ethos_u.configuration import Configuration
from ferrule.backends.ethos_u.kernel import OFM_EXTENT, covered, sliding
from ferrule.backends.ethos_u.stream import WORKING, Operation

AXI_BYTES = (8, 16)
"""Bytes that a port moves in a cycle, by product."""
START = 64
"""Cycles to set up an operation."""
_LENGTHS = (Long.WEIGHT_LENGTH, Long.SCALE_LENGTH, Long.WEIGHT1_LENGTH, Long.SCALE1_LENGTH)
_REMEMBERED = 256


def work_of(operation: Operation) -> tuple[int, int]:
    """Return the size of an operation of `WORKING`, from its registers: what it computes, and the bytes that it moves.

    The first are multiply-accumulates, or the elements that an operation without any computes; the second are those of
    feature maps, weights and scales, or of a copy.
    """
    registers = operation.registers
    if operation.kind is Kind.DMA_START:
        return 0, registers.payload(Long.DMA0_LEN)[0]
    out = math.prod(registers[code] + 1 for code in OFM_EXTENT)
    out_bytes = out << (registers[Short.OFM_PRECISION] >> 1 & 3)
    element = 1 << (registers[Short.IFM_PRECISION] >> 2 & 3)
    if operation.kind is Kind.ELEMENTWISE:
        return out, 2 * out * element + out_bytes
    kernel = sliding(registers)
    channels = registers[Short.IFM_DEPTH_M1] + 1
    ifm_bytes = math.prod(covered(registers, kernel)) * channels * element
    summed = operation.kind is Kind.CONV or (operation.kind is Kind.POOL and operation.parameter == Pool.REDUCE_SUM)
    weights = 0 if operation.kind is Kind.POOL else sum(registers.payload(code)[0] for code in _LENGTHS)
    return out * kernel.taps * (channels if summed else 1), ifm_bytes + out_bytes + weights


def estimate(operation: Operation, configuration: Configuration) -> int:
    """Return an estimate of an operation's cycles: the longer of its arithmetic and its transfers.

    A convolution keeps all multipliers busy, an operation without a sum over channels an eighth of them, and an
    elementwise one a 32nd.
    """
    if operation.kind not in WORKING:
        return 0
    computed, moved_bytes = work_of(operation)
    share = {Kind.CONV: 1, Kind.ELEMENTWISE: 32}.get(operation.kind, 8)
    compute = -(-computed * share // configuration.macs)
    return START + max(compute, -(-moved_bytes // AXI_BYTES[configuration.product]))


class KnownDurations:
    """Durations by stream, which a compiler has estimated; the most recent ones are kept.

    Where the operations of a stream are known, its copies take no time of their own: Vela counts them within the
    operations beside which they run.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cycles: OrderedDict[bytes, Mapping[int, int]] = OrderedDict()

    def remember(self, commands: bytes, cycles: Mapping[int, int]) -> None:
        """Keep the cycles of a stream's operations, by the places of their commands in bytes."""
        with self._lock:
            self._cycles[_digest(commands)] = dict(cycles)
            while len(self._cycles) > _REMEMBERED:
                self._cycles.popitem(last=False)

    def of(self, commands: bytes) -> Mapping[int, int]:
        """Return the cycles of a stream's operations; empty if they are not known."""
        with self._lock:
            return self._cycles.get(_digest(commands), {})


KNOWN = KnownDurations()
"""The durations that this process knows, from the streams that it has lowered."""


def _digest(commands: bytes) -> bytes:
    return hashlib.sha256(commands).digest()
