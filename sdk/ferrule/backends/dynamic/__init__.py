# SPDX-License-Identifier: Apache-2.0
"""Dynamic backends: shared objects with the C interface of include/ferrule/backend.h."""

from ferrule.backends.dynamic.load import load_dynamic_backends
from ferrule.backends.dynamic.report import LoadReport, Reason

__all__ = ["LoadReport", "Reason", "load_dynamic_backends"]
