# SPDX-License-Identifier: Apache-2.0
"""CpuAcc on the host: the C kernels are compiled for this machine and called from Python."""
