# SPDX-License-Identifier: Apache-2.0
import pickle
from dataclasses import replace
from itertools import islice
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmw_bench.load.sources import (
    ContainerHeads,
    Deletes,
    Heads,
    Listings,
    Mixed,
    NamedUploads,
    Reads,
    Uploads,
)
from shardmw_bench.names import FlatNames, TreeNames
from shardmw_bench.units import Mix, parse_size_mix

PATH = '/v1/AUTH_test/c'
FEW = FlatNames(7)

#: Names with folders. Some names are the beginning of others.
names_of_objects = st.lists(
    st.text('ab/é', min_size=1, max_size=6), unique=True, max_size=40
).map(sorted)
prefixes = st.sampled_from(['', 'a', 'a/', 'ab/a', 'é'])
delimiters = st.sampled_from(['', '/', 'a/', 'é'])


def shared(source, processes: int, most: int) -> list:
    """Return the first requests of all processes, sorted by number."""
    all_of_them = [
        request
        for index in range(processes)
        for request in islice(source.requests(index, processes), most)
    ]
    return sorted(all_of_them, key=lambda request: request.number)


def swift_listing(names, marker, limit, prefix, delimiter) -> list[str]:
    """Return the names that Swift lists by the documentation of its API."""
    rows = []
    for name in names:
        if not name.startswith(prefix):
            continue
        _, found, _ = name[len(prefix) :].partition(delimiter or '\0')
        if found:
            end = name.index(delimiter, len(prefix)) + len(delimiter)
            name = name[:end]
        if name > marker and name not in rows:
            rows.append(name)
    return rows[:limit]


def marker_of(request) -> str:
    query = parse_qs(urlsplit(request.target.decode()).query)
    return query.get('marker', [''])[0]


@pytest.mark.parametrize(
    'source',
    [
        NamedUploads(PATH, FEW, size=1),
        Deletes(PATH, FEW),
        Deletes(PATH, FEW, shuffled=True),
    ],
)
@given(processes=st.integers(1, 4))
def test_a_source_that_ends_has_each_name_once(source, processes):
    requests = shared(source, processes, 100)
    assert [each.number for each in requests] == [*range(7)]
    targets = sorted(each.target.decode() for each in requests)
    assert targets == [f'{PATH}/{name}' for name in FEW]


@pytest.mark.parametrize('kind', [Reads, Heads])
@given(processes=st.integers(1, 4), shuffled=st.booleans())
def test_a_source_that_repeats_has_each_name_once_a_round(
    kind, processes, shuffled
):
    source = kind(PATH, FEW, shuffled)
    requests = shared(source, processes, 14)[:14]
    first, second = requests[:7], requests[7:]
    assert [each.target for each in first] == [each.target for each in second]
    assert {unquote(each.target.decode()) for each in first} == {
        f'{PATH}/{name}' for name in FEW
    }


def test_methods_are_those_of_http():
    sources = Reads(PATH, FEW), Heads(PATH, FEW), Deletes(PATH, FEW)
    requests = [next(source.requests(0, 1)) for source in sources]
    assert [each.method for each in requests] == [b'GET', b'HEAD', b'DELETE']
    assert {each.body_bytes for each in requests} == {None}


@given(st.integers(2, 1000))
def test_shuffled_names_are_in_no_order(total):
    reads = Reads(PATH, FlatNames(total), shuffled=True)
    targets = [each.target for each in islice(reads.requests(0, 1), total)]
    assert targets != sorted(targets) or total < 4


def test_sizes_may_differ():
    uploads = Uploads(PATH, parse_size_mix('1:50,2:50'))
    requests = islice(uploads.requests(0, 1), 100)
    assert {each.body_bytes for each in requests} == {1, 2}


@given(st.integers(1, 8).map(lambda n: 1 << n), st.integers(0, 10**6))
def test_spread_names_fall_evenly_into_ranges(ranges, first):
    uploads = Uploads(PATH, 1, spread=True)
    count = 50 * ranges
    counts = [0] * ranges
    for number in range(first, first + count):
        name = uploads.name(number)
        counts[int(name[:4], 16) * ranges >> 16] += 1
    assert max(counts) - min(counts) <= 10


@given(names_of_objects, st.integers(1, 5), prefixes, delimiters)
def test_pages_are_those_of_a_client_that_goes_through_a_listing(
    names, page, prefix, delimiter
):
    all_rows = swift_listing(names, '', None, prefix, delimiter)
    listings = Listings(PATH, all_rows, page, delimiter, prefix)
    marker = ''
    for request in islice(listings.requests(0, 1), listings.pages):
        assert marker_of(request) == marker
        rows = swift_listing(names, marker, page, prefix, delimiter)
        assert listings.rows_of(request.number) == len(rows)
        marker = rows[-1] if rows else marker
    assert not swift_listing(names, marker, page, prefix, delimiter)


def test_processes_share_an_unordered_walk_and_begin_it_again():
    rows = sorted(TreeNames(3, 5), key=lambda name: name[::-1])
    listings = Listings(PATH, rows, page=4, unordered=True)
    requests = shared(listings, 2, listings.pages)
    assert all(b'allow_unordered=true' in each.target for each in requests)
    markers = [marker_of(request) for request in requests]
    assert markers == ['', rows[3], rows[7], rows[11]] * 2


def test_heads_of_a_container_are_all_alike():
    requests = shared(ContainerHeads(PATH), 2, 3)
    assert [request.number for request in requests] == [*range(6)]
    asked = {(request.method, request.target) for request in requests}
    assert asked == {(b'HEAD', PATH.encode())}


@given(names_of_objects, st.integers(1, 5), st.integers(0, 20))
def test_listings_begin_again_after_the_last_page(names, page, number):
    listings = Listings(PATH, names, page)
    first, again = (
        next(listings.requests(n, 1)).target
        for n in (number, number + listings.pages)
    )
    assert first == again


@given(st.integers(0, 5), st.integers(1, 3), st.integers(0, 4))
def test_a_stride_takes_evenly_spaced_pages(first, stride, number):
    listings = Listings(PATH, FlatNames(50), 3)
    some = replace(listings, first=first, stride=stride)
    page = first + number * stride
    one = next(some.requests(number, 2))
    assert one.number == number
    assert one.target == next(listings.requests(page, 1)).target
    assert some.rows_of(number) == listings.rows_of(page)
    following = [each.number for each in islice(some.requests(number, 2), 3)]
    assert following == [number, number + 2, number + 4]


def test_different_requests_for_pages_have_the_same_rows():
    rows = [*FlatNames(5)]
    listings = Listings(PATH, rows, 5, different=True)
    asked = [*islice(listings.requests(0, 1), 20)]
    assert len({each.target for each in asked}) == len(asked)
    for each in asked:
        query = parse_qs(urlsplit(each.target.decode()).query)
        assert query.pop('end_marker')[0] > rows[-1]
        assert query == {'format': ['json'], 'limit': ['5']}


def test_a_page_has_only_the_parameters_that_are_set():
    request = next(Listings(PATH, FEW, 5).requests(0, 1))
    assert request.target == b'/v1/AUTH_test/c?format=json&limit=5'
    odd = Listings(PATH, ['a&b/'], 5, '/', 'a&')
    query = urlsplit(next(odd.requests(0, 1)).target.decode()).query
    assert parse_qs(query) == {
        'format': ['json'],
        'limit': ['5'],
        'prefix': ['a&'],
        'delimiter': ['/'],
    }


class TestMixed:
    MIXED = Mixed(PATH, Mix(20, 70, 5, 5), FEW, 3)

    def test_operations_come_by_their_shares(self):
        requests = [*islice(self.MIXED.requests(0, 1), 200)]
        kinds = [self.MIXED.kinds[each.kind] for each in requests]
        assert kinds == [each.method.decode() for each in requests]
        assert 137 < kinds.count('GET') < 143
        assert 7 < kinds.count('HEAD') < 13

    def test_writes_fall_evenly_between_existing_names(self):
        requests = islice(self.MIXED.requests(0, 1), 1000)
        written = [r.target.decode() for r in requests if r.kind == 0]
        shares = [
            sum(each.startswith(f'{PATH}/{name}-') for each in written)
            for name in FEW
        ]
        assert sum(shares) == len(written)
        assert max(shares) - min(shares) < 5

    def test_sizes_do_not_depend_on_the_operation(self):
        mixed = replace(self.MIXED, size=parse_size_mix('1:50,2:50'))
        requests = islice(mixed.requests(0, 1), 4000)
        sizes = [each.body_bytes for each in requests if each.kind == 0]
        assert 0.4 < sizes.count(1) / len(sizes) < 0.6

    def test_objects_that_were_not_written_are_not_deleted(self):
        requests = islice(self.MIXED.requests(0, 1), 1000)
        assert 'DELETE' not in {each.method.decode() for each in requests}

    def test_objects_that_were_written_are_deleted_once(self):
        made = self.MIXED.requests(0, 1)
        written, deleted = [], []
        for request in islice(made, 2000):
            made.answered(request, 201)
            written += [request.target] * (request.method == b'PUT')
            deleted += [request.target] * (request.method == b'DELETE')
        assert 50 < len(deleted) < 150
        assert deleted == written[: len(deleted)]

    def test_objects_that_were_refused_are_not_deleted(self):
        made = self.MIXED.requests(0, 1)
        for request in islice(made, 1000):
            made.answered(request, 498)
            assert request.method != b'DELETE'

    def test_existing_names_are_not_written(self):
        requests = islice(self.MIXED.requests(0, 1), 200)
        for request in requests:
            exists = request.target.decode() in [f'{PATH}/{n}' for n in FEW]
            assert exists == (request.method in (b'GET', b'HEAD'))

    def test_existing_names_are_overwritten_and_listed(self):
        mixed = replace(self.MIXED, mix=Mix(overwrite=50, list=50), page=7)
        requests = [*islice(mixed.requests(0, 1), 100)]
        of_method = {b'PUT': set(), b'GET': set()}
        for each in requests:
            of_method[each.method].add(each.target.decode())
        assert of_method[b'PUT'] == {f'{PATH}/{name}' for name in FEW}
        assert all('&limit=7' in target for target in of_method[b'GET'])

    def test_processes_write_different_objects(self):
        requests = shared(self.MIXED, 3, 100)
        written = [r.target for r in requests if r.method == b'PUT']
        assert len(set(written)) == len(written)


@pytest.mark.parametrize(
    'source',
    [
        Uploads(PATH, parse_size_mix('1K-4K'), spread=True),
        Listings(PATH, FlatNames(10**6), 10_000, '/'),
        Listings(PATH, FlatNames(10**6), 100, unordered=True),
        ContainerHeads(PATH),
        TestMixed.MIXED,
        Deletes(PATH, FEW),
    ],
)
def test_a_source_is_small_and_survives_a_pipe(source):
    pickled = pickle.dumps(source)
    assert len(pickled) < 1000
    assert pickle.loads(pickled) == source
