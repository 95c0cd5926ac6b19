# SPDX-License-Identifier: Apache-2.0
"""`python -m ferrule`."""

from ferrule.cli import main

main()
