# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from shardmw_bench import templates
from shardmw_bench.cli import main
from shardmw_bench.planning import (
    COSTS,
    PAGES,
    SHARDED,
    Plan,
    page_work,
    rows_of_fullest,
    shown,
)

MANY_CORES = dict.fromkeys(('proxy_cores', 'object_cores'), 10**6)

plans = st.builds(
    Plan,
    objects=st.integers(1, 10**11),
    puts=st.floats(0.1, 10**6, allow_nan=False, allow_infinity=False),
    directories=st.none() | st.integers(1, 10**6),
    limit=st.floats(1, 1000),
    rows=st.integers(10**5, 10**8),
    max_shards=st.integers(1, 4096),
    headroom=st.floats(1, 4),
)
counts = st.integers(1, 10**5)
pages = st.integers(1, 10_000)
cores = st.integers(1, 1000)


def plan_of(objects: float, puts: float, directories=None, **servers):
    return Plan(int(objects), puts, directories, **servers)


@given(plans)
def test_the_recommended_shards_take_the_writes_and_hold_the_objects(plan):
    shards = plan.each.shards * plan.containers
    if plan.kind == SHARDED:
        assert shards * plan.limit >= plan.puts * 0.999
        assert shards * plan.rows >= plan.objects * 0.999
    else:
        assert plan.puts <= plan.limit
        assert plan.containers == 1


@given(plans)
def test_no_container_has_more_shards_than_it_may_have(plan):
    counts = [each.shards for each in plan.each.outlooks]
    assert max(counts) <= plan.max_shards
    assert plan.each.shards in counts


@given(plans, st.integers(1, 10))
def test_a_larger_plan_has_no_fewer_shards(plan, times):
    more = replace(plan, objects=plan.objects * times, puts=plan.puts * times)
    assert more.shards >= plan.shards


@given(st.floats(0.1, 10**6), st.integers(1, 5))
def test_cores_are_as_many_times_busy_as_there_are_writes(puts, times):
    once = plan_of(1, puts).busy_cores
    more = plan_of(1, puts * times).busy_cores
    assert more == pytest.approx({k: v * times for k, v in once.items()})


@given(st.integers(1, 10**11), counts)
def test_the_fullest_shard_has_no_less_than_the_mean(objects, shards):
    fullest = rows_of_fullest(objects, shards)
    assert objects / shards <= fullest * 1.0001
    assert fullest <= objects


@given(pages, st.integers(1, 1024))
def test_a_page_asks_each_shard_and_the_root(page, shards):
    work = page_work(page, shards)
    assert work.requests == shards + 1
    assert work.rows >= page


@given(pages, st.integers(1, 1024), st.integers(1, 1024))
def test_more_shards_are_more_work(page, shards, more):
    few = page_work(page, shards)
    many = page_work(page, shards + more)
    assert many.proxy_us > few.proxy_us
    assert many.container_us > few.container_us


@given(pages, st.integers(1, 1024), cores, cores)
def test_more_cores_make_no_page_slower(page, shards, some, more):
    work = page_work(page, shards)
    few = Plan(container_cores=some).page_seconds(work)
    many = Plan(container_cores=some + more).page_seconds(work)
    assert many <= few
    assert Plan().page_seconds(work) <= many


@given(st.integers(1, 5_000))
def test_larger_pages_of_a_plain_container_cost_less_a_row(page):
    small = Plan().page_seconds(page_work(page, None)) / page
    large = Plan().page_seconds(page_work(2 * page, None)) / (2 * page)
    assert large < small


@given(plans, st.integers(1, 1024))
def test_an_outlook_compares_with_a_plain_container(plan, shards):
    each = plan.outlook(shards)
    plain = plan.rows_per_second(None)
    for page in PAGES:
        listed = each.ratios[page] * plain[page]
        assert listed == pytest.approx(each.rows_per_second[page])


@given(st.integers(1, 200), st.integers(1, 1024))
def test_no_more_disks_are_in_use_than_there_are(disks, shards):
    each = Plan(container_disks=disks).outlook(shards)
    assert 0 < each.disks_in_use <= disks


def warnings_of(plan: Plan) -> str:
    return '\n'.join(templates.lines('plan-warnings', **shown(plan)))


def warnings(objects: float, puts: float, **servers: int) -> str:
    return warnings_of(plan_of(objects, puts, **servers))


@pytest.mark.parametrize(
    ('objects', 'puts', 'expected'),
    [
        (1e5, 10, 'a plain container'),
        (1e9, 10, "a plain container with Swift's native sharding"),
        (1e9, 1500, '1,024 shards'),
        (1e8, 1500, '128 shards'),
        (1e9, 300_000, '3 containers of 1,024 shards each'),
    ],
)
def test_the_recommendation_is_one_that_can_be_followed(
    objects, puts, expected
):
    assert plan_of(objects, puts).recommendation == expected


def test_only_shards_have_advice_on_shards():
    assert warnings(1e5, 10, container_disks=3) == ''


@pytest.mark.parametrize('kind', ['proxy', 'object', 'container'])
def test_servers_that_are_too_few_are_named(kind):
    few = {f'{kind}_cores': 1}
    assert f'The {kind} servers have 1 cores' in warnings(1e9, 20000, **few)


def test_servers_that_are_enough_are_not_named():
    assert 'servers have' not in warnings(1e9, 20000, **MANY_CORES)


def test_small_pages_of_many_shards_are_slow():
    assert "plain container's listing rate or less" in warnings(1e9, 20000)


def test_the_advantage_of_fewer_shards_is_shown():
    assert 'An alternative for faster listings: 15 shards' in warnings(
        1e6, 1500
    )


def test_no_database_is_larger_than_it_should_be():
    each = plan_of(1e12, 200_000).each
    assert each.objects / each.shards <= each.rows
    assert each.objects / each.outlooks[0].shards <= each.rows


def test_costs_are_all_more_than_nothing():
    assert min(COSTS) > 0


def run(*arguments: str):
    return CliRunner().invoke(main, ['plan', *arguments])


def test_the_command_prints_its_advice():
    result = run('--objects', '10e9', '--puts', '20000')
    assert result.exit_code == 0
    assert (
        '10,000,000,000 objects, 20,000 writes/s: 10 containers of 1,024'
        in (result.output)
    )
    assert 'How many shards' in result.output


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['--objects', 'x', '--puts', '1'], "'x' is no count"),
        (['--objects', '1', '--puts', '0'], 'is not in the range x>0'),
        (['--objects', '1'], "Missing option '--puts'"),
    ],
)
def test_invalid_input_is_reported_in_one_line(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    (line,) = (x for x in result.output.splitlines() if 'Error' in x)
    assert message in line


@given(counts, st.integers(1, 1024))
def test_the_fullest_shard_has_at_least_its_share_of_directories(
    directories, shards
):
    share = rows_of_fullest(directories, shards) / directories
    assert 1 / shards <= share * (1 + 1e-9)
    assert share <= 1


@pytest.mark.parametrize(
    ('directories', 'told'),
    [
        (None, ''),
        (10_000, '10,000 directories are enough to shard by them'),
        (100, '100 directories are too few to shard by them'),
    ],
)
def test_the_plan_says_if_directories_are_enough_to_shard_by(
    directories, told
):
    text = warnings_of(plan_of(10**8, 500, directories))
    assert told in text
    assert ('shard by them' in text) is (directories is not None)
