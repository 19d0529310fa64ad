# SPDX-License-Identifier: Apache-2.0
"""What came of loads: figures, tables, and the folder they are kept in."""
