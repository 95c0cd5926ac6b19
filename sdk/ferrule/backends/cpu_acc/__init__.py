# SPDX-License-Identifier: Apache-2.0
"""CpuAcc: runs layers as C on the processor core."""

from ferrule.backends.cpu_acc.backend import CpuAcc

__all__ = ["CpuAcc"]
