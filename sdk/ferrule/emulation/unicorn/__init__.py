# SPDX-License-Identifier: Apache-2.0
"""The engine that runs a firmware inside this process."""
