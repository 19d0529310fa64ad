# SPDX-License-Identifier: Apache-2.0
"""The handlers of client requests, one module for each kind."""
