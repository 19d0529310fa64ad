# SPDX-License-Identifier: Apache-2.0
"""The statsd clients of the installed Swift.

Swift sends metrics with labels from 2.36 on, and its clients are in a module
of their own from 2.34 on.
"""

from collections.abc import Callable, Mapping

# It must come first: it and statsd_client import each other.
from swift.common import utils

try:
    from swift.common.statsd_client import get_statsd_client
except ImportError:  # before Swift 2.34

    def get_statsd_client(conf: Mapping, tail_prefix: str, logger):
        """Return a client by Swift's options."""
        return utils.StatsdClient(
            conf['log_statsd_host'],
            int(conf.get('log_statsd_port', 8125)),
            conf.get('log_statsd_metric_prefix', ''),
            tail_prefix,
            float(conf.get('log_statsd_default_sample_rate', 1)),
            float(conf.get('log_statsd_sample_rate_factor', 1)),
            logger,
        )


try:
    from swift.common.statsd_client import get_labeled_statsd_client
except ImportError:  # before Swift 2.36
    get_labeled_statsd_client = None

#: Sends a metric: its name where metrics have labels, its name elsewhere
#: without the prefix, its kind (``c``, ``ms`` or ``g``), its value and its
#: labels.
Send = Callable[[str, str, str, float, Mapping[str, str]], None]


def open_sender(conf: Mapping, prefix: str, logger) -> Send:
    """Return a function that sends metrics by Swift's options.

    Its clients have no public method for gauges.

    :param conf: a section with ``log_statsd_host``
    :param prefix: what a name without labels begins with
    """
    if get_labeled_statsd_client:
        labelled = get_labeled_statsd_client(conf, logger)
        if labelled.label_formatter is not None:
            return lambda name, dotted, kind, value, labels: labelled._send(
                name, value, kind, labels=labels
            )
    elif conf.get('statsd_label_mode', 'disabled').lower() != 'disabled':
        logger.warning(
            'shardmw: statsd_label_mode needs Swift 2.36 or later: metrics '
            'are sent without labels'
        )
    client = get_statsd_client(conf, prefix, logger)
    return lambda name, dotted, kind, value, labels: client._send(
        dotted, value, kind, None
    )
