# SPDX-License-Identifier: Apache-2.0
"""Code that several backends share, one folder per subject; a backend's manifest names the folders that it uses."""
