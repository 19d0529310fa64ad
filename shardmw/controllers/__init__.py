# SPDX-License-Identifier: Apache-2.0
"""One kind of client request each."""
