# SPDX-License-Identifier: Apache-2.0
"""The pure core: values in, values out.

No module here imports Swift, sends requests or waits.
"""
