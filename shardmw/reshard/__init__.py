# SPDX-License-Identifier: Apache-2.0
"""Changes of layout, late rows, and the daemon that handles both."""
