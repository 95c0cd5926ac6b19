# SPDX-License-Identifier: Apache-2.0
"""The type of what cffi hands out, which has none."""

from __future__ import annotations

from typing import Any, TypeAlias

CData: TypeAlias = Any
"""A value of C's: a pointer, a struct, an array; or a cffi library or FFI."""
