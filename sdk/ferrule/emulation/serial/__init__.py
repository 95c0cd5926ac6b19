# SPDX-License-Identifier: Apache-2.0
"""Real boards: the firmware runs on the board, and Ferrule only has the link."""
