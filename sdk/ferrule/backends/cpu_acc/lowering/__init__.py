# SPDX-License-Identifier: Apache-2.0
"""How layers become calls of the kernels in `src_c/kernels`, one module per operator family."""
