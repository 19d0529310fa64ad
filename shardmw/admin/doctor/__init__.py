# SPDX-License-Identifier: Apache-2.0
"""Find the mistakes of a rollout: ``shardmw-admin doctor``.

:mod:`asking` sends requests to proxies, :mod:`local_files` reads configuration
files, :mod:`probe` writes to a container of its own. :mod:`proxies`,
:mod:`files` and :mod:`daemons` judge what was read, and send no request.
"""
