# SPDX-License-Identifier: Apache-2.0
"""Layers as calls of the kernels for the host's vector instructions."""
