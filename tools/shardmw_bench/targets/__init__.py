# SPDX-License-Identifier: Apache-2.0
"""What loads go to: accounts, servers and databases of a cluster."""
