# SPDX-License-Identifier: Apache-2.0
"""Constants of integer kernels, with proofs that their results are those of the layer's rounding rule."""
