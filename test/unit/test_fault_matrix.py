# SPDX-License-Identifier: Apache-2.0
"""Tests of the cells of the fault matrix, and of the display of results."""

import math

import pytest
from shardmw_saio import ClusterOptions
from shardmw_saio.options import Host
from shardmw_saio.processes import MARK
from shardmw_saio.topology import consecutive_ports, ring_devices, servers
from swift.common.ring import RingData

from shardmw.core.placement import hidden_account
from test.faults import __main__ as command
from test.faults import netrules, network, power
from test.faults.clients import Job
from test.faults.edge import Edge, put_fault
from test.faults.inject import HOW
from test.faults.matrix import CELLS, WORKS, chosen
from test.faults.mutations import MUTATIONS, ROOT, mutated
from test.faults.page import mutation_table, put_in, table
from test.faults.rings import Rings
from test.faults.run import KINDS, Late, is_of
from test.functional.client import Answer
from test.history import Read, Shown, Write, explains

#: What cells need that not every machine has, by what fails in them.
FRAIL = {'net': network, 'all': power}


def outcome(**fields) -> dict:
    return {
        'operations': 1000,
        'acknowledged': 300,
        'refused': {},
        'lost': 0,
        'wrong': 0,
        'well_seconds': 2.4,
        'problems': [],
        'stale': 0,
        'unlisted': 0,
        **fields,
    }


def result_of(cell: str, plain: dict, sharded: dict) -> dict:
    is_good = not any(
        each[name]
        for each in (plain, sharded)
        for name in ('lost', 'wrong', 'problems')
    )
    return {
        'cell': cell,
        'is_good': is_good,
        'plain': plain,
        'sharded': sharded,
    }


def test_cells_are_distinct_and_can_be_run():
    assert len({*CELLS}) == len(CELLS) >= 60
    assert {cell.work for cell in CELLS} == {*WORKS}
    assert {cell.how for cell in CELLS} == {*HOW}


def test_cells_are_chosen_by_the_first_parts_of_their_names():
    assert {cell.what for cell in chosen(['object'])} == {'object'}
    assert {str(cell)[-8:] for cell in chosen(['*-*-reshard'])} == {'-reshard'}
    assert chosen([]) == [*CELLS]
    with pytest.raises(ValueError, match='no cell'):
        chosen(['object-nowhere'])


@pytest.mark.parametrize('missing', [(), ('net',), ('all',), ('net', 'all')])
def test_cells_of_networks_and_power_need_them(monkeypatch, capsys, missing):
    reasons = {each: f'no {each}' * (each in missing) for each in FRAIL}
    for what, module in FRAIL.items():
        monkeypatch.setattr(module, 'why_not', lambda what=what: reasons[what])
    cells = command.possible(chosen(['object', *FRAIL]))
    assert {cell.what for cell in cells} == {'object', *FRAIL} - {*missing}
    lines = capsys.readouterr().out.splitlines()
    assert [line.rpartition(': ')[2] for line in lines] == [
        f'no {each}' for each in missing
    ]


@pytest.mark.parametrize('name', MUTATIONS)
def test_mutations_fit_the_code(name):
    texts = {}
    for module, old, new in MUTATIONS[name].edits:
        text = texts.get(module) or (ROOT / 'shardmw' / module).read_text()
        texts[module] = mutated(text, old, new)
        compile(texts[module], module, 'exec')
    assert chosen([*MUTATIONS[name].cells])


@pytest.mark.parametrize(
    ('what', 'ended', 'is_lost'),
    [('all', 19, True), ('all', 11, False), ('nodes', 19, False)],
)
def test_all_replicas_of_a_row_are_lost_if_all_nodes_lose_power(
    what, ended, is_lost
):
    (cell,) = chosen([f'{what}-power-objects'])
    late = Late(cell, window=(20, 40), well_at=90)
    write = Write('o', 'PUT', ended - 1, ended)
    assert late.loses_row(write) is is_lost
    assert (late.known(write).known == math.inf) is is_lost


@pytest.mark.parametrize(('began', 'is_sure'), [(25, False), (60, True)])
def test_a_deletion_while_no_account_server_runs_is_not_sure(began, is_sure):
    (cell,) = chosen(['all-power-objects'])
    write = Write('o', 'DELETE', began, began + 1)
    assert Late(cell, (20, 40), 90).known(write).is_sure is is_sure


def test_the_table_sums_up_what_was_hit_and_how():
    results = [
        result_of(
            f'proxy-killed-{work}',
            outcome(refused={'GET: 503': 10}, unlisted=3),
            outcome(lost=1, well_seconds=7.6, stale=2),
        )
        for work in ('objects', 'reshard')
    ]
    line = (
        '| {} | 2 | 2 | 4,000 | 1,200 | 2 | 0 '
        '| 0 / 4 | 6 / 0 | 1.0% / 0.0% | 2 s / 8 s |'
    )
    lines = table(results).splitlines()
    assert lines[2:] == [
        line.format('proxy | killed'),
        line.format('all | '),
    ]


def test_faults_of_a_part_share_a_row_of_the_table_if_their_results_agree():
    refused = {'GET: 503': 100}
    results = [
        result_of(
            f'{fault}-objects',
            outcome(well_seconds=well_seconds),
            outcome(**fields),
        )
        for fault, well_seconds, fields in (
            ('proxy-killed', 3, {}),
            ('proxy-stopped', 9, {'refused': refused}),
            ('proxy-slow', 5, {}),
            ('proxy-loop', 3, {'wrong': 1}),
            ('proxy-clock', 3, {'problems': ['sharded: audit']}),
            ('device-gone', 3, {}),
        )
    ]
    rows = [line.split(' | ') for line in table(results).splitlines()[2:]]
    assert [(*row[:4], row[7], row[10]) for row in rows[:-1]] == [
        ('| proxy', 'killed, slow', '2', '0', '0', '0.0% / 0.0%'),
        ('| proxy', 'stopped', '1', '0', '0', '0.0% / 10.0%'),
        ('| proxy', 'loop', '1', '1', '1', '0.0% / 0.0%'),
        ('| proxy', 'clock', '1', '1', '0', '0.0% / 0.0%'),
        ('| device', 'gone', '1', '0', '0', '0.0% / 0.0%'),
    ]
    assert rows[0][-1] == '5 s / 2 s |'


def test_the_last_result_of_a_mutation_counts():
    found = [
        {'mutation': 'a', 'cell': '', 'what': ''},
        {'mutation': 'a', 'cell': 'x-y-z', 'what': '1 wrong answers'},
    ]
    text = mutation_table(found, {'a': 'says a', 'b': 'says b'})
    assert text.splitlines()[2:] == ['| says a | x-y-z | 1 wrong answers |']


def test_a_table_is_put_between_the_marks_of_a_page():
    page = 'a <!-- x: begin --> old <!-- x: end --> b'
    new = 'a <!-- x: begin -->\n\nnew\n<!-- x: end --> b'
    assert put_in(page, 'x', 'new') == new
    with pytest.raises(ValueError, match='no <!-- y'):
        put_in(page, 'y', 'new')


@pytest.mark.parametrize(
    ('server', 'host'),
    [
        ('proxy-2', 'proxy-2'),
        ('memcached-2', 'proxy-2'),
        ('container-3', 'storage-3'),
        ('object-expirer', 'proxy-1'),
        ('memcached', 'proxy-1'),
    ],
)
def test_servers_are_on_hosts_of_a_network(server, host):
    assert netrules.host_of(server) == Host(
        netrules.address_of(host), netrules.namespace_of(host)
    )


@pytest.mark.parametrize(
    ('name', 'listed', 'stored'),
    [
        ('proxy-killed-objects', None, None),
        ('container-killed-objects', 90, None),
        ('object-killed-objects', 90, 90),
        ('net-halved-objects', 90, 90),
        ('net-replication-objects', 90, None),
    ],
)
def test_writes_during_a_fault_may_be_late(name, listed, stored):
    (cell,) = chosen([name])
    late = Late(cell, window=(20, 40), well_at=90)
    early, meanwhile = Write('o', 'PUT', 1, 2), Write('o', 'PUT', 25, 26)
    assert late.known(early) == early
    known = late.known(meanwhile)
    assert (known.listed, known.stored) == (listed, stored)


@pytest.mark.parametrize(('apart', 'is_shown'), [(1.5, True), (2.5, False)])
def test_clocks_that_differ_may_change_the_order_of_writes(apart, is_shown):
    (cell,) = chosen(['proxy-clock-objects'])
    late = Late(cell, (20, 40), 90)
    first = late.ordered(Write('o', 'PUT', 25, 26, size=1))
    second = late.ordered(Write('o', 'PUT', 26 + apart, 29, size=2))
    read = Read('HEAD', 30, 31, {})
    assert explains([first, second], read, Shown(size=1)) is is_shown
    # What was written alone is visible at once.
    assert not explains([first], Read('HEAD', 26.1, 26.2, {}), None)


@pytest.mark.parametrize('cell', CELLS, ids=str)
def test_listings_always_show_what_was_there_before_the_fault(cell):
    late = Late(cell, window=(20, 40), well_at=90)
    early = Write('o', 'PUT', 1, 20 - cell.early_seconds - 1)
    known = late.known(late.ordered(early))
    assert (known.listed == early.ended) is not cell.forgets_rows
    assert not late.loses_row(early)


def test_reads_before_the_fault_are_early():
    late = Late(CELLS[0], window=(20, 40), well_at=90)
    assert late.is_early(Read('HEAD', 18, 19, {}))
    assert not late.is_early(Read('HEAD', 19, 21, {}))


@pytest.mark.parametrize(
    ('what', 'began', 'shown', 'is_blind'),
    [
        ('HEAD', 25, None, True),
        ('HEAD', 25, Shown(), False),
        ('HEAD', 60, None, False),
        ('listing: 404', 25, None, True),
        ('page', 25, None, False),
    ],
)
def test_a_404_says_nothing_while_no_account_server_runs(
    what, began, shown, is_blind
):
    (cell,) = chosen(['all-power-objects'])
    read = Read(what, began, began + 1, {'o': shown})
    assert Late(cell, (20, 40), 90).is_blind(read) is is_blind


@pytest.mark.parametrize('name', ['device-new-names', 'ring-grown-names'])
def test_a_database_that_was_made_anew_may_lack_all_earlier_rows(name):
    (cell,) = chosen([name])
    known = Late(cell, (20, 40), 90).known(Write('o', 'PUT', 1, 2))
    assert known.listed == 90


@pytest.mark.parametrize(
    ('problem', 'kinds'),
    [
        ('plain: lists (1, 2), shows ((1, 2), (0, 0))', ['plain']),
        ('sharded: audit', ['sharded']),
        (f'replicas differ: {hidden_account("AUTH_a")}', ['sharded']),
        ('account: not 3 objects of 4 bytes', [*KINDS]),
    ],
)
def test_a_problem_concerns_one_kind_of_container_or_both(problem, kinds):
    assert [kind for kind in KINDS if is_of(problem, kind)] == kinds


@pytest.mark.parametrize(
    ('shards', 'headers'), [(0, {}), (4, {'X-Container-Shard-Count': '4'})]
)
def test_clients_create_plain_containers_too(monkeypatch, shards, headers):
    job = Job(
        ('http://h/v1/a', 't'), 'c', 'me', 1, again=('n',), shards=shards
    )
    worker, sent = job.worker(), []

    def created(method, container, name=None, **kwargs) -> Answer:
        sent.append((method, container, name, kwargs['headers']))
        return Answer(201, {}, b'')

    monkeypatch.setattr(worker.client, 'request', created)
    while ('PUT', 'n', None, headers) not in sent:
        assert len(sent) < 200
        worker.work()


@pytest.fixture
def rings(tmp_path) -> Rings:
    options = ClusterOptions(1, 3)
    ports = consecutive_ports(options)
    return Rings(tmp_path, ring_devices(options, servers(options, ports)))


def devices_of(folder) -> list[list[str]]:
    """Return the devices of each partition of the ring of containers."""
    ring = RingData.load(str(folder / 'container.ring.gz')).to_dict()
    names = [device['device'] for device in ring['devs']]
    return [
        [names[device] for device in devices]
        for devices in zip(*ring['replica2part2dev_id'], strict=True)
    ]


def test_partitions_begin_on_one_device_of_each_node(rings, tmp_path):
    rings.begin(3)
    devices = devices_of(tmp_path)
    assert {*map(frozenset, devices)} == {frozenset({'sdb1', 'sdb2', 'sdb3'})}


def test_partitions_move_to_the_spare_devices_of_their_nodes(rings, tmp_path):
    rings.begin(3)
    rings.move()
    devices = devices_of(tmp_path)
    numbers = [{name[3] for name in names} for names in devices]
    assert numbers == [{'1', '2', '3'}] * len(devices)
    spares = sum(name.endswith('spare') for names in devices for name in names)
    assert spares == sum(map(len, devices)) / 2


def test_partitions_that_get_more_replicas_keep_the_first_one(rings, tmp_path):
    rings.begin(1)
    before = devices_of(tmp_path)
    rings.grow()
    after = devices_of(tmp_path)
    assert {*map(len, before)} == {1}
    assert {*map(len, after)} == {3}
    assert all(one in three for (one,), three in zip(before, after, strict=1))


def test_rings_are_restored_without_spare_devices(rings, tmp_path):
    rings.begin(3)
    rings.move()
    rings.restore()
    assert not rings.have_changed
    assert 'spare' not in str(devices_of(tmp_path))


class FakeServer:
    """A server that records its requests."""

    def __init__(self) -> None:
        self.seen = []

    def __call__(self, env, start_response):
        self.seen.append(env)
        start_response('200 OK', [])
        return [b'']


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
def ask(monkeypatch, tmp_path, server):
    """Return a function that sends a request to a server with a fault."""
    monkeypatch.setenv(MARK, f'{tmp_path}:it')
    monkeypatch.setattr('time.sleep', lambda seconds: None)
    edge = Edge(server)

    def ask(fault: dict, **env: str) -> str:
        put_fault(tmp_path, 'it', fault)
        told = []
        env = {'REQUEST_METHOD': 'PUT', 'PATH_INFO': '/v1/a/c/o', **env}
        edge(env, lambda status, headers: told.append(status))
        return told[-1]

    return ask


def test_a_full_disk_can_be_read(ask, server):
    assert ask({'full': True}).startswith('507')
    assert ask({'full': True}, REQUEST_METHOD='GET') == '200 OK'
    assert ask({}) == '200 OK'
    assert len(server.seen) == 2


def test_nothing_comes_from_a_proxy_that_is_cut_off(ask):
    cut = {'cut': ['7']}
    assert ask(cut, HTTP_USER_AGENT='proxy-server 7').startswith('503')
    assert ask(cut, HTTP_USER_AGENT='proxy-server 8') == '200 OK'


def test_a_clock_that_is_ahead_dates_objects(ask, server):
    assert ask({'clock': 2}) == '200 OK'
    assert ask({'clock': 2}, PATH_INFO='/v1/a/c') == '200 OK'
    with_time = ['HTTP_X_TIMESTAMP' in env for env in server.seen]
    assert with_time == [True, False]
