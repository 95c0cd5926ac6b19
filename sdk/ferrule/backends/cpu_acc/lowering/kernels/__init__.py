# SPDX-License-Identifier: Apache-2.0
"""The C kernels among which layers with weights choose, one module per technique, and the choice."""
