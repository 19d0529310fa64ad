# SPDX-License-Identifier: Apache-2.0
"""The layouts of containers, their changes, and misplaced rows."""
