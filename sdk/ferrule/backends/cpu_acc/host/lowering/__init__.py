# SPDX-License-Identifier: Apache-2.0
"""Lowering of layers to calls of the kernels for the host's vector instructions."""
