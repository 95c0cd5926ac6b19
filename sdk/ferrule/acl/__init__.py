# SPDX-License-Identifier: Apache-2.0
"""What surrounds a generated class over the Arm Compute Library: its project, its build, its runs, the comparison."""
