# SPDX-License-Identifier: Apache-2.0
"""What users import to test what they write for Ferrule."""
