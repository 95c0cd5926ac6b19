# SPDX-License-Identifier: Apache-2.0
"""CpuRef: every operator by its numpy kernel, on the host."""

from ferrule.backends.cpu_ref.backend import CpuRef

__all__ = ["CpuRef"]
