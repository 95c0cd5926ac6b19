# SPDX-License-Identifier: Apache-2.0
"""A backend in one folder: an imaginary device that adds tensors."""
