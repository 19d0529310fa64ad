# SPDX-License-Identifier: Apache-2.0
"""The names of metrics, how they are sent, and what uses them."""

import ast
import itertools
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
import yaml
from swift.common.utils import get_logger

from shardmw.backend import metrics
from shardmw.backend.metrics import (
    COUNTER,
    FANOUT,
    GAUGE,
    OBJECT_REQUESTS,
    PERIOD_SECONDS,
    ROWS_LIMIT,
    SAMPLING_OPTIONS,
    SILENT,
    TIMER,
    WRITES_OF_CONTAINER,
    Busiest,
    Metric,
    Metrics,
    container_labels,
    open_metrics,
)
from shardmw.swift.statsd import get_labeled_statsd_client
from test.unit.fakeswift import Logger

LOGGER = get_logger({})
CLIENT_WITH_LABELS = 'shardmw.swift.statsd.get_labeled_statsd_client'
PROJECT = Path(__file__).parents[2]
DOCUMENTATION = PROJECT / 'doc' / 'metrics.md'
PROMETHEUS = PROJECT / 'etc' / 'prometheus'
DASHBOARD = PROJECT / 'etc' / 'grafana' / 'shardmw.json'
ALERT_TESTS = PROMETHEUS / 'alerts-test.yml'

METRICS = {
    constant: value
    for constant, value in vars(metrics).items()
    if isinstance(value, Metric)
}

#: The endings of names in Prometheus, and the exporter's names of the kinds.
SUFFIXES = {COUNTER: '_total', TIMER: '_seconds', GAUGE: ''}
EXPORTER_KINDS = {COUNTER: 'counter', TIMER: 'observer', GAUGE: 'gauge'}
DOCUMENTED_KINDS = {COUNTER: 'counter', TIMER: 'timer', GAUGE: 'gauge'}

#: The series of a histogram.
HISTOGRAM_SUFFIXES = ('_bucket', '_count', '_sum')

#: The methods that send a metric, with the number of arguments before it and
#: the labels that the method adds.
SENDERS = {'note': (0, set()), 'note_of': (2, {'account', 'container'})}

ROW = re.compile(r'^\| `shardmw\.(\S+)` \| `(\w+)` \| (\w+) \|', re.MULTILINE)
LABEL = re.compile(r'{(\w+)}')
SERIES = re.compile(r'\bshardmw_\w+')


def prometheus_name(metric: Metric) -> str:
    return metric.name + SUFFIXES[metric.kind]


class Statsd:
    """A server that receives metrics on loopback."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(('127.0.0.1', 0))
        self._socket.settimeout(5)
        self.conf = {
            'log_statsd_host': '127.0.0.1',
            'log_statsd_port': str(self._socket.getsockname()[1]),
        }

    def line(self) -> str:
        return self._socket.recv(4096).decode()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def statsd():
    statsd = Statsd()
    yield statsd
    statsd.close()


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def by_release(labelled: str, dotted: str) -> str:
    """Return what is sent with statsd_label_mode: Swift 2.36 has labels."""
    return labelled if get_labeled_statsd_client else dotted


class TestSending:
    """Through Swift's own clients, to a socket."""

    @pytest.mark.parametrize(
        ('metric', 'value', 'labels', 'dotted', 'labelled'),
        [
            (
                OBJECT_REQUESTS,
                2,
                {'method': 'PUT'},
                'shardmw.object.PUT:2|c',
                'shardmw_object_requests:2|c|#method:PUT',
            ),
            (
                FANOUT,
                0.25,
                {},
                'shardmw.fanout.time:250.0|ms',
                'shardmw_fanout:250.0|ms',
            ),
            (
                ROWS_LIMIT,
                1_000_000,
                {},
                'shardmw.rows_per_shard:1000000|g',
                'shardmw_rows_per_shard:1000000|g',
            ),
        ],
    )
    def test_has_a_dotted_name_or_labels(
        self, statsd, metric, value, labels, dotted, labelled
    ):
        open_metrics(statsd.conf, LOGGER, 0).note(metric, value, **labels)
        assert statsd.line() == dotted
        conf = {**statsd.conf, 'statsd_label_mode': 'dogstatsd'}
        open_metrics(conf, LOGGER, 0).note(metric, value, **labels)
        assert statsd.line() == by_release(labelled, dotted)

    def test_quotes_names_of_containers(self, statsd):
        name = 'logs.2026/ü|:#,'
        quoted = 'logs%2E2026%2F%C3%BC%7C%3A%23%2C'
        opened = open_metrics(statsd.conf, LOGGER, 1)
        opened.note_of('AUTH_ci', name, WRITES_OF_CONTAINER)
        dotted = f'shardmw.top.writes.AUTH_ci.{quoted}:1|c'
        assert statsd.line() == dotted
        conf = {**statsd.conf, 'statsd_label_mode': 'dogstatsd'}
        opened = open_metrics(conf, LOGGER, 1)
        opened.note_of('AUTH_ci', name, WRITES_OF_CONTAINER)
        labels = f'account:AUTH_ci,container:{quoted}'
        labelled = f'shardmw_top_writes:1|c|#{labels}'
        assert statsd.line() == by_release(labelled, dotted)

    def test_has_swifts_prefix_and_labels_of_users(self, statsd):
        conf = {**statsd.conf, 'log_statsd_metric_prefix': 'p1'}
        open_metrics(conf, LOGGER, 0).note(ROWS_LIMIT, 5)
        dotted = 'p1.shardmw.rows_per_shard:5|g'
        assert statsd.line() == dotted
        conf['statsd_label_mode'] = 'dogstatsd'
        conf['statsd_user_label_site'] = 'a'
        open_metrics(conf, LOGGER, 0).note(ROWS_LIMIT, 5)
        labelled = 'shardmw_rows_per_shard:5|g|#user_site:a'
        assert statsd.line() == by_release(labelled, dotted)

    def test_without_labels_warns_if_they_are_configured(self, statsd):
        conf = {**statsd.conf, 'statsd_label_mode': 'dogstatsd'}
        logger = Logger()
        with mock.patch(CLIENT_WITH_LABELS, None):
            open_metrics(conf, logger, 0).note(ROWS_LIMIT, 5)
        assert statsd.line() == 'shardmw.rows_per_shard:5|g'
        assert 'needs Swift 2.36' in logger.lines[0]

    @pytest.mark.parametrize('option', SAMPLING_OPTIONS)
    def test_leaves_out_no_gauges(self, statsd, option):
        conf = {**statsd.conf, option: '0.000001'}
        opened = open_metrics(conf, LOGGER, 0)
        opened.note(OBJECT_REQUESTS, method='PUT')
        opened.note(ROWS_LIMIT, 5)
        assert statsd.line() == 'shardmw.rows_per_shard:5|g'

    def test_needs_a_host(self):
        assert open_metrics({}, LOGGER, 20) is SILENT

    def test_that_fails_is_logged_and_fails_no_request(self):
        def send(*_) -> None:
            raise OSError('too many open files')

        logger = Logger()
        Metrics(send, 1, logger).note_of('a', 'c', WRITES_OF_CONTAINER)
        (line,) = logger.lines
        assert line.endswith(
            'shardmw_top_writes is not sent: too many open files'
        )


class TestBusiest:
    def test_are_the_first_ones_at_first(self):
        busiest = Busiest(2, Clock())
        asked = [busiest.has('a', name) for name in 'xyzxyz']
        assert asked == [True, True, False, True, True, False]

    def test_are_those_with_the_most_requests_in_the_period_before(self):
        clock = Clock()
        busiest = Busiest(2, clock)
        for name in 'xyzzzyy':
            busiest.has('a', name)
        clock.now = PERIOD_SECONDS
        asked = [busiest.has('a', name) for name in 'xyz']
        assert asked == [False, True, True]

    def test_are_forgotten_when_others_had_more_in_a_period(self):
        clock = Clock()
        busiest = Busiest(1, clock)
        for name in 'xxxxx':
            busiest.has('a', name)
        clock.now = PERIOD_SECONDS
        for name in 'xyy':
            busiest.has('a', name)
        clock.now = 2 * PERIOD_SECONDS
        assert [busiest.has('a', name) for name in 'xy'] == [False, True]

    def test_leave_room_for_others_if_they_are_few(self):
        clock = Clock()
        busiest = Busiest(2, clock)
        busiest.has('a', 'x')
        clock.now = PERIOD_SECONDS
        assert busiest.has('a', 'y')
        assert not busiest.has('a', 'z')

    def test_are_none_if_the_bound_is_0(self):
        assert not Busiest(0, Clock()).has('a', 'x')


class TestNames:
    def test_are_documented(self):
        documented = ROW.findall(DOCUMENTATION.read_text())
        assert len(documented) == len(METRICS)
        assert {*documented} == {
            (
                re.sub(
                    r'{(\w+)}', lambda label: label[1].upper(), each.dotted
                ),
                each.name,
                DOCUMENTED_KINDS[each.kind],
            )
            for each in METRICS.values()
        }

    def test_are_unique(self):
        names = [prometheus_name(metric) for metric in METRICS.values()]
        assert len({*names}) == len(names)

    def test_are_all_sent_with_their_labels(self):
        assert sent_labels() == {
            constant: {*metric.labels} for constant, metric in METRICS.items()
        }


def calls() -> Iterator[ast.Call]:
    """Yield the calls of methods in the code."""
    for path in (PROJECT / 'shardmw').rglob('*.py'):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and hasattr(node.func, 'attr'):
                yield node


def sent_labels() -> dict[str, set[str]]:
    """Return the labels with which the code sends each metric."""
    found = {}
    for call in calls():
        if call.func.attr not in SENDERS:
            continue
        place, labels = SENDERS[call.func.attr]
        given = {*labels, *(each.arg for each in call.keywords)}
        if None in given:  # **labels
            given = given - {None} | {*container_labels('a', 'c')}
        metric = getattr(call.args[place], 'id', None)
        if metric in METRICS:
            assert found.setdefault(metric, given) == given
    return found


@pytest.fixture(scope='module')
def mappings() -> list[dict]:
    """Return the rules of the statsd exporter."""
    text = (PROMETHEUS / 'statsd-mapping.yml').read_text()
    return yaml.safe_load(text)['mappings']


@pytest.fixture(scope='module')
def rules() -> list[dict]:
    """Return the alert rules."""
    groups = yaml.safe_load((PROMETHEUS / 'alerts.yml').read_text())['groups']
    return [rule for group in groups for rule in group['rules']]


@pytest.fixture(scope='module')
def panels() -> list[dict]:
    """Return the panels of the dashboard that show series."""
    panels = json.loads(DASHBOARD.read_text())['panels']
    return [panel for panel in panels if panel['type'] != 'row']


def kept_in(value, wanted):
    """Return a JSON value without the keys that `wanted` lacks."""
    if isinstance(wanted, dict) and isinstance(value, dict):
        return {k: kept_in(value[k], wanted[k]) for k in wanted if k in value}
    if isinstance(wanted, list) and isinstance(value, list):
        pairs = itertools.zip_longest(value, wanted)
        return [kept_in(each, other) for each, other in pairs]
    return value


def made_series() -> set[str]:
    """Return the names of all series in Prometheus."""
    names = set()
    for metric in METRICS.values():
        name = prometheus_name(metric)
        if metric.kind == TIMER:
            names |= {name + suffix for suffix in HISTOGRAM_SUFFIXES}
        else:
            names.add(name)
    return names


class TestMapping:
    def test_knows_both_names_of_every_metric(self, mappings):
        known = {each['match']: each for each in mappings}
        assert len(known) == len(mappings) == 2 * len(METRICS)
        for metric in METRICS.values():
            dotted = 'shardmw.' + LABEL.sub('*', metric.dotted)
            labels = {name: f'${i}' for i, name in enumerate(metric.labels, 1)}
            assert known[dotted].get('labels', {}) == labels
            assert 'labels' not in known[metric.name]
            for match in (dotted, metric.name):
                assert known[match]['name'] == prometheus_name(metric)
                kind = EXPORTER_KINDS[metric.kind]
                assert known[match]['match_metric_type'] == kind

    def test_forgets_containers(self, mappings):
        of_containers = {
            prometheus_name(metric)
            for metric in METRICS.values()
            if 'container' in metric.labels
        }
        for each in mappings:
            if each['name'] in of_containers:
                assert each['ttl'] == '1h'


class TestAlerts:
    def test_use_series_that_exist(self, rules):
        for rule in rules:
            assert {*SERIES.findall(rule['expr'])} <= made_series()

    def test_count_the_first_value_of_a_counter(self, rules):
        for rule in rules:
            expr = ' '.join(rule['expr'].split())
            for series, time in re.findall(r'increase\((\S+)\[(\w+)]', expr):
                name = series.partition('{')[0]
                assert f'{series} unless {name} offset {time}' in expr

    def test_say_what_they_mean(self, rules):
        for rule in rules:
            assert rule['labels']['severity'] in ('warning', 'critical')
            assert {*rule['annotations']} == {'summary', 'description'}

    def test_are_documented_in_their_order(self, rules):
        text = DOCUMENTATION.read_text()
        documented = re.findall(r'^\| `(Shardmw\w+)`', text, re.MULTILINE)
        assert {*documented} == {rule['alert'] for rule in rules}

    def test_are_each_tested_with_and_without_a_fault(self, rules):
        tests = yaml.safe_load(ALERT_TESTS.read_text())['tests']
        firing = {
            each['alertname']
            for test in tests
            for each in test['alert_rule_test']
            if each['exp_alerts']
        }
        assert firing == {rule['alert'] for rule in rules}


class TestDashboard:
    def test_uses_series_that_exist(self, panels):
        for panel in panels:
            for target in panel['targets']:
                asked = {*SERIES.findall(target['expr'])}
                assert asked
                assert asked <= made_series()

    def test_groups_by_labels_that_exist(self, panels):
        labels = {'le'}.union(*(m.labels for m in METRICS.values()))
        for panel in panels:
            for target in panel['targets']:
                for grouped in re.findall(r' by \(([^)]*)\)', target['expr']):
                    assert {*grouped.split(', ')} <= labels
                shown = re.findall(r'{{(\w+)}}', target['legendFormat'])
                assert {*shown} <= labels

    def test_shows_every_metric(self, panels):
        text = ' '.join(t['expr'] for p in panels for t in p['targets'])
        assert {*SERIES.findall(text)} >= {
            prometheus_name(m) for m in METRICS.values() if m.kind != TIMER
        }

    def test_has_only_what_grafana_reads(self):
        """Grafana's own types of dashboards read every key."""
        pytest.importorskip('grafana_foundation_sdk')  # for Python 3.11
        from grafana_foundation_sdk.cog.encoder import JSONEncoder
        from grafana_foundation_sdk.cog.plugins import register_default_plugins
        from grafana_foundation_sdk.models.dashboard import Dashboard

        register_default_plugins()
        dashboard = json.loads(DASHBOARD.read_text())
        read = JSONEncoder().encode(Dashboard.from_json(dashboard))
        assert kept_in(json.loads(read), dashboard) == dashboard

    def test_has_panels_that_do_not_overlap(self):
        taken = set()
        for panel in json.loads(DASHBOARD.read_text())['panels']:
            at = panel['gridPos']
            cells = {
                (x, y)
                for x in range(at['x'], at['x'] + at['w'])
                for y in range(at['y'], at['y'] + at['h'])
            }
            assert not cells & taken
            assert max(x for x, _ in cells) < 24
            taken |= cells
