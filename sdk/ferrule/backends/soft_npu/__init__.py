# SPDX-License-Identifier: Apache-2.0
"""SoftNpu: a device in software, which exercises the device API on boards without an accelerator."""

from ferrule.backends.soft_npu.backend import SoftNpu

__all__ = ["SoftNpu"]
