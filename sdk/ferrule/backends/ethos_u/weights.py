# SPDX-License-Identifier: Apache-2.0
"""Weights and scales of Ethos-U55 and U65: decoded, brought into the order OHWI, and kept by digest."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from threading import Lock
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ferrule.backends.ethos_u.native_weights import native_decoder
from ferrule.backends.ethos_u.weight_decoder import WeightError, decode_slowly
from ferrule.backends.ethos_u.weight_order import Int16, WeightOrder, arranged
from ferrule.errors import FerruleError

__all__ = ["MAX_WEIGHTS", "WeightCache", "WeightError", "WeightOrder", "scales", "weights"]

MAX_WEIGHTS = 1 << 25
"""The most weights that one operation may have, with those that fill up its stream."""
CACHE_BYTES = 256 << 20
Blob = bytes | npt.NDArray[np.uint8]
SCALE_BYTES = 10
"""Bytes of one output channel: 40 bits of bias, 32 of scale, 6 of shift, and 2 that are not used."""
Int64 = npt.NDArray[np.int64]


class Scales(NamedTuple):
    """Bias, scale and shift per output channel."""

    bias: Int64
    """Signed, of 40 bits."""
    scale: Int64
    """Unsigned, of 32 bits."""
    shift: Int64
    """0 to 63, to the right."""


def scales(data: bytes | npt.NDArray[np.uint8], channels: int) -> Scales:
    """Return the scales of the first `channels` output channels of a stream; FerruleError if it is too short."""
    if len(data) < SCALE_BYTES * channels:
        raise FerruleError(f"the scale stream has {len(data)} bytes, and {channels} channels need {SCALE_BYTES} each")
    rows = np.frombuffer(data, np.uint8, SCALE_BYTES * channels).reshape(channels, SCALE_BYTES).astype(np.int64)
    bias = (rows[:, :5] << (8 * np.arange(5))).sum(axis=1)
    bias -= (bias >> 39) << 40
    return Scales(bias, (rows[:, 5:9] << (8 * np.arange(4))).sum(axis=1), rows[:, 9] & 63)


def weights(data: Blob, order: WeightOrder) -> Int16:
    """Return the weights of one core of an operation in the order OHWI.

    A stream may go on after the weights that the operation needs; what follows is not read.

    Raises:
        WeightError: the stream is damaged or has too few weights, or the operation has more than MAX_WEIGHTS.
    """
    count = order.count
    if count > MAX_WEIGHTS:
        raise WeightError(f"the operation has {count:,} weights, and at most {MAX_WEIGHTS:,} are supported")
    native = native_decoder()
    if native is None:
        return arranged(_enough(decode_slowly(bytes(data), count), count), order)
    return native.arranged(_enough(native.decode(np.frombuffer(data, np.uint8), count), count), order)


def _enough(stream: Int16, count: int) -> Int16:
    if len(stream) < count:
        raise WeightError(f"the weight stream has {len(stream):,} weights, and its operation needs {count:,}")
    return stream


class WeightCache:
    """Weights that were used last, found again by the digest of their stream; any thread may use it."""

    def __init__(self, limit_bytes: int = CACHE_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.size_bytes = 0
        self._arrays: OrderedDict[tuple[bytes, WeightOrder], Int16] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._arrays)

    def weights(self, data: Blob, order: WeightOrder) -> Int16:
        """Return the weights in order OHWI; the array cannot be written. WeightError as for `weights`."""
        key = hashlib.blake2b(bytes(data), digest_size=16).digest(), order
        with self._lock:
            if key in self._arrays:
                self._arrays.move_to_end(key)
                return self._arrays[key]
        found = weights(data, order)  # without the lock: a thread waits for no other's decoding
        found.flags.writeable = False
        self._keep(key, found)
        return found

    def _keep(self, key: tuple[bytes, WeightOrder], array: Int16) -> None:
        with self._lock:
            if key in self._arrays or array.nbytes > self.limit_bytes:
                return
            self._arrays[key] = array
            self.size_bytes += array.nbytes
            while self.size_bytes > self.limit_bytes:
                _, oldest = self._arrays.popitem(last=False)
                self.size_bytes -= oldest.nbytes
