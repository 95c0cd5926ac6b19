# SPDX-License-Identifier: Apache-2.0
"""GpuAcc's workloads: layers as kernel launches."""
