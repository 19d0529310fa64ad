# SPDX-License-Identifier: Apache-2.0
"""Pseudo-random values by number and without a state. Pure.

A request of a number is the same in every run and in every process.
"""

import math
from hashlib import blake2b

_GOLDEN_SHARE = (math.sqrt(5) - 1) / 2


def fraction(number: int, purpose: bytes) -> float:
    """Return a random value from 0 to below 1.

    :param purpose: values of different purposes are independent
    """
    digest = blake2b(b'%d' % number, digest_size=8, person=purpose).digest()
    # a float has room for 53 bits; more could be rounded up to 1
    return (int.from_bytes(digest, 'big') >> 11) / (1 << 53)


def even_fraction(number: int) -> float:
    """Return a value from 0 to below 1; successive ones lie evenly."""
    return number * _GOLDEN_SHARE % 1


def shuffling_step(total: int) -> int:
    """Return a step to visit ``total`` places once each, not in order.

    ``number * step % total`` for the numbers below ``total`` are these
    numbers in another order.
    """
    step = max(1, round(total * _GOLDEN_SHARE))
    while math.gcd(step, total) > 1:
        step += 1
    return step
