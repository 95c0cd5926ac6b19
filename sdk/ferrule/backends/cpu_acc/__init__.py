# SPDX-License-Identifier: Apache-2.0
"""CpuAcc: layers run as C on the processor core."""

from ferrule.backends.cpu_acc.backend import CpuAcc

__all__ = ["CpuAcc"]
