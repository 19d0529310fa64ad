# SPDX-License-Identifier: Apache-2.0
"""The audit watcher of object servers."""
