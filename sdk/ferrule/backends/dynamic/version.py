# SPDX-License-Identifier: Apache-2.0
"""The version of the C interface."""

from __future__ import annotations

from ferrule.backends.version import ApiVersion

API_VERSION = ApiVersion(1, 3)
"""FERRULE_BACKEND_API_MAJOR and _MINOR."""
