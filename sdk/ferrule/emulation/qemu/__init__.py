# SPDX-License-Identifier: Apache-2.0
"""The engine that runs a firmware in a qemu-system-arm process."""
