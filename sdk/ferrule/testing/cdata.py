# SPDX-License-Identifier: Apache-2.0
"""A type for cffi's objects, which have no static type."""

from __future__ import annotations

from typing import Any, TypeAlias

CData: TypeAlias = Any
"""A C value (a pointer, a struct or an array), or a cffi library or FFI object."""
