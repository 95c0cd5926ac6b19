# SPDX-License-Identifier: Apache-2.0
"""Functions that lower layers, one module per family of operators."""
