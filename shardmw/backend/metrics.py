# SPDX-License-Identifier: Apache-2.0
"""The metrics that the filter and the daemon send to statsd.

Each metric has two names. Without ``statsd_label_mode`` it is sent with a
dotted name, which has the values of its labels as components::

    shardmw.object.PUT:1|c

With Swift's labelled metrics it is sent with labels instead::

    shardmw_object_requests:1|c|#method:PUT

``doc/metrics.md`` describes all of them. Dashboards and alarms depend on the
names, so names must not change.

Some metrics are about one container. A process sends them for a bounded number
of containers: those that had the most requests in the minute before, and as
many others as there is room for. The ``log_statsd_*`` and ``statsd_*`` options
are Swift's.
"""

import heapq
import re
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import quote

from shardmw.core.bounded import BoundedDict
from shardmw.swift.statsd import open_sender

#: The kinds of metrics, as statsd names them.
COUNTER, TIMER, GAUGE = 'c', 'ms', 'g'

DOTTED_PREFIX = 'shardmw'
MILLISECONDS = 1000

#: How often a process decides anew which containers are the busiest.
PERIOD_SECONDS = 60

#: The most containers for which a process counts requests.
COUNTED = 10_000

#: The option without which Swift sends no metrics.
HOST_OPTION = 'log_statsd_host'

#: The options with which Swift sends only some of its metrics.
SAMPLING_OPTIONS = (
    'log_statsd_default_sample_rate',
    'log_statsd_sample_rate_factor',
)


class Metric(NamedTuple):
    """A metric.

    :param name: its name where metrics have labels
    :param dotted: its name elsewhere, without the prefix; the names of the
                   labels are in braces
    :param kind: COUNTER, TIMER (in seconds) or GAUGE
    """

    name: str
    dotted: str
    kind: str

    @property
    def labels(self) -> list[str]:
        """Return the names of its labels."""
        return re.findall(r'{(\w+)}', self.dotted)


# The filter: what a process of a proxy does.

OBJECT_REQUESTS = Metric('shardmw_object_requests', 'object.{method}', COUNTER)
CONTAINER_REQUESTS = Metric(
    'shardmw_container_requests', 'container.{method}', COUNTER
)
ACCOUNT_REQUESTS = Metric(
    'shardmw_account_requests', 'account.{method}', COUNTER
)
FANOUT = Metric('shardmw_fanout', 'fanout.time', TIMER)
FANOUT_REQUESTS = Metric('shardmw_fanout_requests', 'fanout.requests', COUNTER)
FANOUT_REFILLS = Metric('shardmw_fanout_refills', 'fanout.refills', COUNTER)
LISTINGS_KEPT = Metric('shardmw_listing_kept', 'listing.kept', COUNTER)
UNAVAILABLE = Metric('shardmw_unavailable', 'unavailable.{cause}', COUNTER)
ADOPTED = Metric('shardmw_adopted_rows', 'adopted.{kind}', COUNTER)
LEFTOVERS = Metric('shardmw_leftovers_deleted', 'leftovers.deleted', COUNTER)
UNSETTLED = Metric('shardmw_unsettled', 'unsettled.{process}', GAUGE)
DELAYED = Metric('shardmw_ratelimit_sleep', 'ratelimit.sleep.{kind}', TIMER)
REFUSED = Metric(
    'shardmw_ratelimit_refused', 'ratelimit.refused.{kind}', COUNTER
)
PERMITS = Metric('shardmw_ratelimit_permits', 'ratelimit.permits', COUNTER)
BOOKINGS = Metric('shardmw_ratelimit_bookings', 'ratelimit.bookings', COUNTER)
ALONE = Metric('shardmw_ratelimit_alone', 'ratelimit.alone', COUNTER)
FALLBACK = Metric('shardmw_ratelimit_fallback', 'ratelimit.fallback', COUNTER)

# The filter: one of the busiest containers.

WRITES_OF_CONTAINER = Metric(
    'shardmw_top_writes', 'top.writes.{account}.{container}', COUNTER
)
LISTINGS_OF_CONTAINER = Metric(
    'shardmw_top_listing', 'top.listing.{account}.{container}', TIMER
)
DELAYED_OF_CONTAINER = Metric(
    'shardmw_top_delayed', 'top.delayed.{account}.{container}.{kind}', TIMER
)
REFUSED_OF_CONTAINER = Metric(
    'shardmw_top_refused', 'top.refused.{account}.{container}.{kind}', COUNTER
)
UNAVAILABLE_OF_CONTAINER = Metric(
    'shardmw_top_unavailable',
    'top.unavailable.{account}.{container}.{cause}',
    COUNTER,
)

# The daemon: changes of layout.

CHANGES = Metric('shardmw_reshard_changes', 'reshard.changes.{process}', GAUGE)
RESHARDED_ROWS = Metric('shardmw_reshard_rows', 'reshard.rows', COUNTER)
MOVED = Metric(
    'shardmw_reshard_moved', 'reshard.moved.{account}.{container}', GAUGE
)
TO_MOVE = Metric(
    'shardmw_reshard_to_move', 'reshard.to_move.{account}.{container}', GAUGE
)
WAITING = Metric(
    'shardmw_reshard_waiting', 'reshard.waiting.{account}.{container}', GAUGE
)

# The daemon: the containers with the fullest databases.

ROWS_LIMIT = Metric('shardmw_rows_per_shard', 'rows_per_shard', GAUGE)
FULLEST = Metric('shardmw_top_rows', 'top.rows.{account}.{container}', GAUGE)
SHARDS = Metric(
    'shardmw_top_shards', 'top.shards.{account}.{container}', GAUGE
)
SKEW = Metric('shardmw_top_skew', 'top.skew.{account}.{container}', GAUGE)

#: Values of the label ``kind`` of ADOPTED.
STRAY, LATE = 'stray', 'late'

#: Values of the label ``kind`` of requests that are delayed or refused.
WRITE_KIND, LISTING_KIND = 'write', 'listing'

#: Values of the label ``cause``: the record of the layout cannot be read, the
#: request got no turn, a shard did not answer, or anything else failed.
RECORD, TURN, SHARD, OTHER = 'record', 'turn', 'shard', 'other'


class Busiest:
    """The busiest containers of a process.

    These are the ones with the most requests in the last period. If they are
    fewer than `most`, the next containers with a request are added.

    :param most: the most containers to choose
    :param clock: returns seconds that never go back
    """

    def __init__(
        self, most: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.most = most
        self.clock = clock
        self._started = clock()
        self._counts = BoundedDict(COUNTED)
        self._chosen: set[tuple[str, str]] = set()

    def has(self, account: str, container: str) -> bool:
        """Count a request; return True if its container is a busy one."""
        now = self.clock()
        if now - self._started >= PERIOD_SECONDS:
            self._started = now
            self._chosen = set(
                heapq.nlargest(self.most, self._counts, self._counts.get)
            )
            self._counts.clear()
        key = account, container
        self._counts[key] = self._counts.get(key, 0) + 1
        if len(self._chosen) < self.most:
            self._chosen.add(key)
        return key in self._chosen


class Metrics:
    """Sends metrics to statsd.

    An error is logged and fails no request.

    :param send: sends a metric with its value and its labels; None sends none
    :param containers: for how many containers metrics of their own are sent
    :param logger: the filter's logger
    """

    def __init__(
        self,
        send: Callable[[Metric, float, Mapping[str, str]], None] | None,
        containers: int = 0,
        logger=None,
    ) -> None:
        self.containers = containers
        self.is_on = send is not None
        self._send = send
        self._logger = logger
        self._busiest = Busiest(containers)

    def note(self, metric: Metric, value: float = 1, **labels: str) -> None:
        """Send a metric.

        :param value: what to add to a COUNTER, the seconds of a TIMER, or the
                      value of a GAUGE
        """
        if not self.is_on:
            return
        if metric.kind == TIMER:
            value = round(value * MILLISECONDS, 4)
        try:
            self._send(metric, value, labels)
        except Exception as err:
            self._logger.warning(
                'shardmw: metric %s is not sent: %s', metric.name, err
            )

    def note_of(
        self,
        account: str,
        container: str,
        metric: Metric,
        value: float = 1,
        **labels: str,
    ) -> None:
        """Send a metric of a container if it is one of the busiest."""
        if not (self.is_on and self.containers):
            return
        if self._busiest.has(account, container):
            self.note(
                metric, value, **container_labels(account, container), **labels
            )


#: Sends nothing.
SILENT = Metrics(None)


def container_labels(account: str, container: str) -> dict[str, str]:
    """Return the labels of a container's metrics.

    Names are quoted as in a URL. Dots are quoted, too, because a dot ends a
    component of a dotted name.
    """
    return {
        'account': _quoted(account),
        'container': _quoted(container),
    }


def _quoted(name: str) -> str:
    return quote(name, safe='').replace('.', '%2E')


def open_metrics(conf: Mapping, logger, containers: int) -> Metrics:
    """Return the sender of a process's metrics, by Swift's options.

    :param conf: a section of a configuration, with ``[DEFAULT]``
    :param containers: for how many containers metrics of their own are sent
    """
    if not conf.get(HOST_OPTION):
        return SILENT
    send = open_sender(conf, DOTTED_PREFIX, logger)
    # A sample of a counter or timer is enough to estimate the whole. A gauge
    # that is left out is missing until the daemon's next interval.
    whole = {k: v for k, v in conf.items() if k not in SAMPLING_OPTIONS}
    send_gauge = open_sender(whole, DOTTED_PREFIX, logger)

    def send_either(
        metric: Metric, value: float, labels: Mapping[str, str]
    ) -> None:
        (send_gauge if metric.kind == GAUGE else send)(
            metric.name,
            metric.dotted.format(**labels),
            metric.kind,
            value,
            labels,
        )

    return Metrics(send_either, containers, logger)
