# SPDX-License-Identifier: Apache-2.0
"""The decoder of compressed weights in C, which is compiled on first use, and its interface."""

from __future__ import annotations

import ctypes
import logging
import math
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ferrule.backends.ethos_u.weight_decoder import MAX_MAGNITUDE, WeightError
from ferrule.backends.ethos_u.weight_order import Int16, WeightOrder
from ferrule.errors import FerruleError
from ferrule.nativelib import NativeLibrary

_LOG = logging.getLogger(__name__)
_FOLDER = Path(__file__).with_name("native")
_FLAGS = ("-std=c11", "-O2")
_REASONS = {
    -1: "the weight stream ends inside of a slice",
    -2: "the weight stream begins without a palette",
    -3: "the weight stream has a reserved divisor of weights",
    -4: f"a weight has a magnitude above {MAX_MAGNITUDE}",
}
Bytes = npt.NDArray[np.uint8]


_ORDER = (
    *("ofm_depth", "input_channels", "kernel_height", "kernel_width"),
    *("ofm_block_depth", "ifm_block_depth", "ofm_ublock_depth", "input_group_depth"),
    *("tile_height", "tile_width", "tap_multiple", "is_part_kernel"),
)
"""The members of `struct ferrule_weight_order` of weights.h, each of 32 bits."""


class NativeDecoder:
    """The functions of native/weights.h."""

    def __init__(self, library: NativeLibrary) -> None:
        """Load the library; raises as `NativeLibrary.functions`."""
        functions = library.functions()
        self._slice_bytes: int = functions["ferrule_weight_slice_bytes"]()
        self._decode, self._arrange = functions["ferrule_weights_decode"], functions["ferrule_weights_arrange"]

    def decode(self, data: Bytes, limit: int) -> Int16:
        """Return the first weights of a stream, at most `limit`; WeightError if it is damaged."""
        stream = np.empty(limit, np.int16)
        return stream[: self.fill(stream, data)]

    def fill(self, out: Int16, data: Bytes) -> int:
        """Write the first weights of a stream, and return how many there are; WeightError if it is damaged."""
        count, workspace = ctypes.c_uint64(), np.empty(self._slice_bytes, np.uint8)
        addresses = (each.ctypes.data for each in (workspace, out))
        failure = self._decode(data.ctypes.data, len(data), *addresses, len(out), ctypes.byref(count))
        if failure:
            raise WeightError(_REASONS[failure])
        return count.value

    def arranged(self, stream: Int16, order: WeightOrder) -> Int16:
        """Return the weights in order OHWI; WeightError if an extent is above 65,536 or the stream is too short."""
        result = np.zeros(math.prod(order.shape), np.int16)
        native = np.array([getattr(order, name) for name in _ORDER], np.uint32)
        if self._arrange(stream.ctypes.data, len(stream), native.ctypes.data, result.ctypes.data, len(result)):
            raise WeightError(f"{len(stream)} weights cannot be arranged as {order}")
        return result.reshape(order.shape)


def library(*flags: str) -> NativeLibrary:
    """Return the sources with compiler flags; further ones are for tests, such as those of a sanitizer."""
    return NativeLibrary(
        name="ethos_u_weights",
        title="decoder of Ethos-U weights",
        purpose="the fast decoder of Ethos-U weights",
        sources=(_FOLDER / "weight_decoder.c", _FOLDER / "weight_order.c"),
        headers=(_FOLDER / "weights.h",),
        include_dirs=(_FOLDER,),
        flags=(*_FLAGS, *flags),
    )


@cache
def native_decoder() -> NativeDecoder | None:
    """Return the decoder in C, or None, with a warning, if this machine cannot compile or load it."""
    try:
        return NativeDecoder(library())
    except (FerruleError, OSError) as error:
        _LOG.warning(
            "the weights of Ethos-U are decoded in Python, which takes about a hundred times longer: %s", error
        )
        return None
