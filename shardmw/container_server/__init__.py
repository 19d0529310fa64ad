# SPDX-License-Identifier: Apache-2.0
"""The filter of container servers, which only reads."""
