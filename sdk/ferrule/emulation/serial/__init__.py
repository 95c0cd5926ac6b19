# SPDX-License-Identifier: Apache-2.0
"""Real boards: the firmware runs there, and only the link is ours."""
