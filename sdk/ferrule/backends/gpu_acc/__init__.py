# SPDX-License-Identifier: Apache-2.0
"""GpuAcc: int8 layers run as OpenCL kernels, on the host."""

from ferrule.backends.gpu_acc.backend import GpuAcc

__all__ = ["GpuAcc"]
