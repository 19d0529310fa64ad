# SPDX-License-Identifier: Apache-2.0
"""The filters of proxies and of internal clients.

``filter`` hands each request to ``account``, ``container``, ``lifecycle`` or
``object``; ``parts`` puts them together. ``listings_filter`` is the second
filter.
"""
