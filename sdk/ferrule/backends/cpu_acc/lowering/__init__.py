# SPDX-License-Identifier: Apache-2.0
"""Lowering of layers to calls of the kernels in `src_c/kernels`; `table` has the function of each layer type."""
