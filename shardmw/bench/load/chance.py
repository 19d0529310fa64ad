# SPDX-License-Identifier: Apache-2.0
"""Chance that repeats itself: by a number, and without a state. Pure.

So requests of one number are the same in every run, whichever process makes
them.
"""

import math
from hashlib import blake2b

_BYTES = 8
_VALUES = 1 << 8 * _BYTES
_GOLDEN_SHARE = (math.sqrt(5) - 1) / 2


def fraction(number: int, purpose: bytes) -> float:
    """From 0 on and below 1; any is as likely as another.

    :param purpose: a few bytes; those of one purpose tell nothing about
                    those of another
    """
    digest = blake2b(b'%d' % number, digest_size=_BYTES, person=purpose)
    # as many bits as a float has room for, lest it is rounded up to 1
    return (int.from_bytes(digest.digest(), 'big') >> 11) / (_VALUES >> 11)


def even_fraction(number: int) -> float:
    """From 0 on and below 1; those of any numbers in a row lie evenly.

    So few of them have the shares of many, which chance would not give.
    """
    return number * _GOLDEN_SHARE % 1


def shuffling_step(total: int) -> int:
    """A step that gets to each of so many, and leaves out their neighbours.

    ``number * step % total`` for the numbers below ``total`` are these
    numbers in another order.

    :param total: at least 1
    """
    step = max(1, round(total * _GOLDEN_SHARE))
    while math.gcd(step, total) > 1:
        step += 1
    return step
