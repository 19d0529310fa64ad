# SPDX-License-Identifier: Apache-2.0
"""The objects and bytes of sharded containers and of their accounts."""
