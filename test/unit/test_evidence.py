# SPDX-License-Identifier: Apache-2.0
"""Tests of what the answers of a container's replicas prove."""

from collections.abc import Iterator
from itertools import combinations_with_replacement

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmw.core.evidence import (
    Contents,
    Replica,
    Said,
    Verdict,
    contents,
    current,
    is_decided,
    last_deletion,
    verdict,
)

#: A container was put at 1, deleted at 2, and put at 3. Some replicas also
#: have a deletion at 4.
EMPTY = Replica(Said.ALIVE, put=3, deleted=2)
ROWS = Replica(Said.ALIVE, put=3, deleted=2, objects=7)
STALE_EMPTY = Replica(Said.ALIVE, put=1)
STALE_ROWS = Replica(Said.ALIVE, put=1, objects=7)
REVIVED = Replica(Said.ALIVE, put=3, deleted=4, objects=1)
DELETED_BEFORE = Replica(Said.DELETED, deleted=2)
DELETED_AFTER = Replica(Said.DELETED, deleted=4)
#: Of other containers: a deletion at 0.5; a PUT at the time of a deletion.
DELETED_FIRST = Replica(Said.DELETED, deleted=0.5)
PUT_THEN = Replica(Said.ALIVE, put=2)
MISSING = Replica(Said.MISSING)
SILENT = Replica(Said.SILENT)

ALL = (
    EMPTY,
    ROWS,
    STALE_EMPTY,
    STALE_ROWS,
    REVIVED,
    DELETED_BEFORE,
    DELETED_AFTER,
    MISSING,
    SILENT,
)
SPEAKING = [each for each in ALL if each != SILENT]
COUNTS = (1, 2, 3, 5)

PROOFS = (Verdict.ALIVE, Verdict.DELETED)


def _all_combinations() -> Iterator[tuple[Replica, ...]]:
    for count in COUNTS:
        yield from combinations_with_replacement(ALL, count)


COMBINATIONS = list(_all_combinations())


def _said(replicas, *kinds: Said) -> int:
    return sum(each.said in kinds for each in replicas)


def _is_majority(number: int, replicas) -> bool:
    return number > len(replicas) // 2


def _is_alive_once_replicated(replicas) -> bool:
    """Return True if the container exists when all databases are merged.

    Swift keeps the latest time of either kind, and all rows.
    """
    put = max(each.put for each in replicas)
    deleted = max(each.deleted for each in replicas)
    is_revived = any(
        each.objects and each.put < each.deleted == deleted
        for each in replicas
    )
    return put > deleted or is_revived


def _violations(is_wrong) -> list[tuple[Replica, ...]]:
    return [replicas for replicas in COMBINATIONS if is_wrong(replicas)]


def _with_silent_as(replicas, heard: Replica) -> list[Replica]:
    return [heard if each == SILENT else each for each in replicas]


@st.composite
def _histories(draw, losses: bool):
    """Draw what replicas know after PUTs and DELETEs that succeeded.

    Each request was accepted by a majority, so any two have a replica in
    common.

    :param losses: True if databases may be lost in the end
    :returns: what each replica would say; which replicas are silent, fewer
              than half of them; and how many PUTs and DELETEs there were
    """
    count = draw(st.sampled_from(COUNTS))
    numbers = st.sets(
        st.integers(0, count - 1), min_size=count // 2 + 1, max_size=count
    )
    takers = draw(st.lists(numbers, min_size=1, max_size=5))
    puts, deletions = [0] * count, [0] * count
    for at, taken in enumerate(takers, 1):
        for number in taken:
            (puts if at % 2 else deletions)[number] = at
    lost = draw(st.sets(st.integers(0, count - 1))) if losses else set()

    def replica(number: int) -> Replica:
        put, deleted = puts[number], deletions[number]
        if number in lost or put == deleted == 0:
            return MISSING
        if deleted > put:
            return Replica(Said.DELETED, deleted=deleted)
        return Replica(Said.ALIVE, put, deleted)

    silent = draw(
        st.sets(st.integers(0, count - 1), max_size=(count - 1) // 2)
    )
    return [replica(i) for i in range(count)], silent, len(takers)


def _heard(replicas: list[Replica], silent: set[int]) -> list[Replica]:
    return [
        SILENT if number in silent else each
        for number, each in enumerate(replicas)
    ]


class TestExamples:
    @pytest.mark.parametrize(
        ('replicas', 'expected'),
        [
            ([ROWS, ROWS, ROWS], Verdict.ALIVE),
            ([ROWS, EMPTY, SILENT], Verdict.ALIVE),
            ([ROWS, DELETED_BEFORE, SILENT], Verdict.ALIVE),
            ([ROWS, MISSING, MISSING], Verdict.ALIVE),
            ([DELETED_AFTER, DELETED_AFTER, REVIVED], Verdict.ALIVE),
            ([DELETED_AFTER, DELETED_AFTER, SILENT], Verdict.DELETED),
            ([DELETED_AFTER, DELETED_AFTER, ROWS], Verdict.DELETED),
            ([DELETED_BEFORE, DELETED_BEFORE, STALE_ROWS], Verdict.DELETED),
            ([DELETED_FIRST, DELETED_FIRST, SILENT], Verdict.DELETED),
            ([DELETED_BEFORE, DELETED_BEFORE, PUT_THEN], Verdict.UNKNOWN),
            ([MISSING, MISSING, MISSING], Verdict.ABSENT),
            ([MISSING, MISSING, SILENT], Verdict.ABSENT),
            ([MISSING, MISSING, DELETED_AFTER], Verdict.ABSENT),
            ([MISSING, SILENT, ROWS], Verdict.UNKNOWN),
            ([DELETED_AFTER, SILENT, ROWS], Verdict.UNKNOWN),
            ([DELETED_AFTER, MISSING, ROWS], Verdict.UNKNOWN),
            ([MISSING, SILENT, SILENT], Verdict.UNKNOWN),
            ([SILENT, SILENT, SILENT], Verdict.UNKNOWN),
        ],
    )
    def test_of_three_replicas(self, replicas, expected):
        assert verdict(replicas) is expected

    @pytest.mark.parametrize(
        ('replicas', 'expected'),
        [
            ([ROWS, ROWS, EMPTY], Contents.HOLDS),
            ([ROWS, SILENT, SILENT], Contents.HOLDS),
            ([ROWS, MISSING, MISSING], Contents.HOLDS),
            ([ROWS, EMPTY, MISSING], Contents.HOLDS),
            ([EMPTY, EMPTY, MISSING], Contents.EMPTY),
            ([EMPTY, EMPTY, SILENT], Contents.EMPTY),
            ([EMPTY, EMPTY, DELETED_BEFORE], Contents.EMPTY),
            ([EMPTY, EMPTY, ROWS], Contents.UNKNOWN),
            ([EMPTY, MISSING, MISSING], Contents.UNKNOWN),
            ([EMPTY, DELETED_AFTER, MISSING], Contents.UNKNOWN),
            ([DELETED_AFTER, DELETED_AFTER, EMPTY], Contents.GONE),
            ([DELETED_AFTER, DELETED_AFTER, STALE_ROWS], Contents.UNKNOWN),
            ([DELETED_AFTER, MISSING, MISSING], Contents.UNKNOWN),
            ([MISSING, MISSING, MISSING], Contents.UNKNOWN),
        ],
    )
    def test_of_the_rows_of_three_replicas(self, replicas, expected):
        assert contents(replicas) is expected


class TestVerdict:
    """Each rule holds for all combinations."""

    def test_alive_is_what_replication_leads_to_if_enough_replicas_know(self):
        def is_wrong(replicas):
            knowing = _said(replicas, Said.ALIVE, Said.DELETED)
            speak_for_all = (
                _is_majority(knowing, replicas) or SILENT not in replicas
            )
            expected = speak_for_all and _is_alive_once_replicated(replicas)
            return (verdict(replicas) is Verdict.ALIVE) != expected

        assert not _violations(is_wrong)

    def test_deleted_is_what_a_majority_says_of_all_that_was_put(self):
        def is_wrong(replicas):
            put = max(each.put for each in replicas)
            saying = sum(
                each.said is Said.DELETED and each.deleted > put
                for each in replicas
            )
            expected = _is_majority(saying, replicas) and (
                not _is_alive_once_replicated(replicas)
            )
            return (verdict(replicas) is Verdict.DELETED) != expected

        assert not _violations(is_wrong)

    def test_absent_is_what_a_majority_tells_if_none_is_alive(self):
        def is_wrong(replicas):
            told = len(replicas) - _said(replicas, Said.SILENT)
            expected = (
                _is_majority(told, replicas)
                and not _said(replicas, Said.ALIVE)
                and verdict(replicas) is not Verdict.DELETED
            )
            return (verdict(replicas) is Verdict.ABSENT) != expected

        assert not _violations(is_wrong)

    @pytest.mark.parametrize('count', COUNTS)
    def test_missing_replicas_alone_prove_nothing(self, count):
        assert verdict([MISSING] * count) is Verdict.ABSENT

    @pytest.mark.parametrize('count', COUNTS)
    def test_silent_replicas_alone_prove_nothing(self, count):
        assert verdict([SILENT] * count) is Verdict.UNKNOWN

    def test_missing_replicas_never_outvote_one_that_is_alive(self):
        def is_wrong(replicas):
            others = _said(replicas, Said.MISSING, Said.SILENT)
            return (
                others == len(replicas) - 1
                and _said(replicas, Said.ALIVE)
                and verdict(replicas) in (Verdict.ABSENT, Verdict.DELETED)
            )

        assert not _violations(is_wrong)

    def test_more_missing_replicas_prove_no_more(self):
        def is_wrong(replicas):
            return (
                verdict(replicas) not in PROOFS
                and verdict([*replicas, MISSING]) in PROOFS
            )

        assert not _violations(is_wrong)

    def test_silent_replicas_prove_no_more_than_missing_ones(self):
        def is_wrong(replicas):
            found = verdict(replicas)
            return found in PROOFS and found is not verdict(
                _with_silent_as(replicas, MISSING)
            )

        assert not _violations(is_wrong)

    @given(st.lists(st.sampled_from(ALL), min_size=1, max_size=5), st.data())
    def test_does_not_depend_on_the_order(self, replicas, data):
        shuffled = data.draw(st.permutations(replicas))
        assert verdict(shuffled) is verdict(replicas)

    @given(_histories(losses=False))
    def test_a_proof_is_what_the_last_request_did(self, history):
        replicas, silent, requests = history
        truth = Verdict.ALIVE if requests % 2 else Verdict.DELETED
        assert verdict(_heard(replicas, silent)) in (
            truth,
            Verdict.UNKNOWN,
            Verdict.ABSENT,
        )

    @given(_histories(losses=False))
    def test_a_request_that_reached_all_replicas_is_known_if_most_answer(
        self, history
    ):
        replicas, silent, requests = history
        newest = next(
            each for each in replicas if requests in (each.put, each.deleted)
        )
        truth = Verdict.ALIVE if requests % 2 else Verdict.DELETED
        assert verdict(_heard([newest] * len(replicas), silent)) is truth

    @given(_histories(losses=True))
    def test_a_proof_stands_whatever_the_silent_ones_say(self, history):
        replicas, silent, _requests = history
        found = verdict(_heard(replicas, silent))
        if found in PROOFS:
            stands = (found, Verdict.UNKNOWN)
            assert verdict(replicas) in stands

    @given(_histories(losses=True))
    def test_alive_stands_whatever_the_silent_ones_say(self, history):
        replicas, silent, _requests = history
        if verdict(_heard(replicas, silent)) is Verdict.ALIVE:
            assert verdict(replicas) is Verdict.ALIVE


def test_a_replica_has_no_times_and_no_rows_unless_it_tells_them():
    assert Replica(Said.MISSING) == Replica(Said.MISSING, 0, 0, 0)


class TestIsDecided:
    @pytest.mark.parametrize(
        ('knowing', 'silent', 'expected'),
        [
            (2, 1, True),
            (1, 0, True),
            (1, 1, False),
            (0, 0, False),
            (0, 3, False),
        ],
    )
    def test_of_three_replicas(self, knowing, silent, expected):
        assert is_decided(knowing, silent, 3) is expected

    def test_needs_more_than_half_of_an_even_number(self):
        assert not is_decided(2, 1, 4)


class TestCurrent:
    def test_a_put_before_the_last_deletion_is_stale(self):
        assert current([STALE_ROWS, ROWS, DELETED_BEFORE]) == [1]

    def test_a_put_at_the_time_of_the_deletion_is_stale(self):
        assert current([PUT_THEN, DELETED_BEFORE]) == []

    def test_an_older_put_counts_if_it_is_newer_than_the_deletion(self):
        older, newer = ROWS._replace(put=2.5), ROWS
        assert current([older, newer, DELETED_BEFORE]) == [0, 1]

    def test_a_deleted_one_that_got_rows_counts_if_nothing_was_put(self):
        assert current([REVIVED, STALE_ROWS, DELETED_AFTER]) == [0]

    def test_a_deleted_one_that_got_rows_is_stale_after_a_put(self):
        assert current([REVIVED, ROWS._replace(put=5)]) == [1]

    def test_one_that_got_rows_is_stale_after_a_later_deletion(self):
        later = Replica(Said.DELETED, deleted=6)
        assert current([REVIVED, later]) == []


class TestLastDeletion:
    def test_counts_on_a_replica_that_is_alive_again(self):
        assert last_deletion([ROWS, MISSING, SILENT]) == 2

    def test_is_0_if_no_replica_knows_of_one(self):
        assert last_deletion([STALE_ROWS, MISSING, SILENT]) == 0
        assert last_deletion([MISSING, SILENT]) == 0


class TestContents:
    """Each rule holds for all combinations."""

    def test_a_replica_that_lists_a_row_vetoes_emptiness(self):
        def is_wrong(replicas):
            lists = any(each.objects for each in replicas)
            return lists and contents(replicas) in (
                Contents.EMPTY,
                Contents.GONE,
            )

        assert not _violations(is_wrong)

    def test_empty_needs_a_majority_that_is_alive_and_empty(self):
        def is_wrong(replicas):
            empty = sum(
                each.is_alive and not each.objects for each in replicas
            )
            expected = _is_majority(empty, replicas) and not any(
                each.objects for each in replicas
            )
            return (contents(replicas) is Contents.EMPTY) != expected

        assert not _violations(is_wrong)

    def test_gone_needs_a_majority_that_says_deleted(self):
        def is_wrong(replicas):
            deleted = _said(replicas, Said.DELETED)
            expected = _is_majority(deleted, replicas) and not any(
                each.objects for each in replicas
            )
            return (contents(replicas) is Contents.GONE) != expected

        assert not _violations(is_wrong)

    def test_one_replica_that_lists_a_row_is_enough_to_hold_it(self):
        def is_wrong(replicas):
            empty = sum(
                each.is_alive and not each.objects for each in replicas
            )
            deleted = _said(replicas, Said.DELETED)
            is_outvoted = _is_majority(max(empty, deleted), replicas)
            expected = (
                any(each.objects for each in replicas) and not is_outvoted
            )
            return (contents(replicas) is Contents.HOLDS) != expected

        assert not _violations(is_wrong)

    def test_missing_and_silent_replicas_prove_nothing(self):
        def is_wrong(replicas):
            others = _said(replicas, Said.MISSING, Said.SILENT)
            return others == len(replicas) and (
                contents(replicas) is not Contents.UNKNOWN
            )

        assert not _violations(is_wrong)

    def test_more_missing_or_silent_replicas_prove_no_emptiness(self):
        proofs = (Contents.EMPTY, Contents.GONE)

        def is_wrong(replicas):
            return contents(replicas) not in proofs and any(
                contents([*replicas, more]) in proofs
                for more in (MISSING, SILENT)
            )

        assert not _violations(is_wrong)

    def test_the_answer_of_a_silent_replica_never_turns_empty_into_gone(self):
        def is_wrong(replicas):
            return contents(replicas) is Contents.EMPTY and any(
                contents(_with_silent_as(replicas, heard)) is Contents.GONE
                for heard in SPEAKING
            )

        assert not _violations(is_wrong)

    @given(st.lists(st.sampled_from(ALL), min_size=1, max_size=5), st.data())
    def test_do_not_depend_on_the_order(self, replicas, data):
        shuffled = data.draw(st.permutations(replicas))
        assert contents(shuffled) is contents(replicas)
