# SPDX-License-Identifier: Apache-2.0
"""SoftNpu: a device in software. It shows the device API at work where there is no accelerator."""

from ferrule.backends.soft_npu.backend import SoftNpu

__all__ = ["SoftNpu"]
