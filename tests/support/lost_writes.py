# SPDX-License-Identifier: Apache-2.0
"""A fault of a register that does not take what is written."""

from __future__ import annotations

from ferrule._typing import override
from ferrule.devices import Fault, RegisterAccess


class LostWrites(Fault):
    """A number of writes to the register at `offset` are lost: of those that set all bits of `mask`."""

    def __init__(self, offset: int, times: int = 1 << 30, *, mask: int = 0) -> None:
        self._offset, self._left, self._mask = offset, times, mask

    @override
    def on_write(self, access: RegisterAccess) -> int | None:
        if access.offset == self._offset and access.value & self._mask == self._mask and self._left > 0:
            self._left -= 1
            return None
        return access.value
