# SPDX-License-Identifier: Apache-2.0
"""Ferrule: from a trained model to bit-exact firmware."""
