# SPDX-License-Identifier: Apache-2.0
"""`override` for Python 3.11, whose typing module lacks it; type checkers see the one of typing_extensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

_T = TypeVar("_T")

if TYPE_CHECKING:
    from typing_extensions import override
else:

    def override(method: _T) -> _T:
        """Return the method unchanged."""
        return method


__all__ = ["override"]
