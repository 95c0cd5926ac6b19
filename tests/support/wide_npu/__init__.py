# SPDX-License-Identifier: Apache-2.0
"""WideNpu: a device of the tests, whose DMA needs addresses that are multiples of 32."""
