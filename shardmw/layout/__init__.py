# SPDX-License-Identifier: Apache-2.0
"""Which layout a container has, and rows that lie elsewhere."""
