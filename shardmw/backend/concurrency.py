# SPDX-License-Identifier: Apache-2.0
"""Green threads, as the installed Swift has them."""

try:
    from swift.common.concurrency import Event as Event
    from swift.common.concurrency import Timeout as Timeout
    from swift.common.concurrency import sleep as sleep
    from swift.common.concurrency import spawn as spawn
except ImportError:  # before Swift 2.38
    from eventlet import Event as Event
    from eventlet import Timeout as Timeout
    from eventlet import sleep as sleep
    from eventlet import spawn as spawn
