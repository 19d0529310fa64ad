# SPDX-License-Identifier: Apache-2.0
"""Sizes, durations and lists, as they are typed. Pure."""

import math
import re

_SIZE = re.compile(r'(\d+)([KMGT]?)(?:i?B)?', re.IGNORECASE)
_SIZE_STEPS = ' KMGT'
_DURATION = re.compile(r'(\d+(?:\.\d+)?)(ms|s|m|h|)')
_UNIT_SECONDS = {'ms': 0.001, 's': 1, '': 1, 'm': 60, 'h': 3600}


def parse_size(text: str) -> int:
    """Bytes of a size such as ``1``, ``4K`` or ``1MiB``; K is 1,024.

    :raises ValueError: if it's something else
    """
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise ValueError(f'{text!r} is no size: write bytes, or 4K, 1M, 1G')
    number, unit = match.groups()
    return int(number) << 10 * _SIZE_STEPS.index(unit.upper() or ' ')


def parse_duration(text: str) -> float:
    """Seconds of a duration such as ``10``, ``1.5s``, ``200ms`` or ``2m``.

    :raises ValueError: if it's something else, or no time at all
    """
    match = _DURATION.fullmatch(text.strip())
    seconds = match and float(match[1]) * _UNIT_SECONDS[match[2]]
    if not seconds:
        raise ValueError(
            f'{text!r} is no duration: write seconds, or 200ms, 10s, 2m'
        )
    return seconds


def parse_counts(text: str) -> tuple[int, ...]:
    """Numbers from 1 on, such as ``1,8,32``, in their order.

    :raises ValueError: if it's something else
    """
    try:
        counts = tuple(map(int, text.split(',')))
    except ValueError:
        counts = ()
    if not counts or min(counts) < 1 or len(set(counts)) < len(counts):
        raise ValueError(
            f'{text!r} is no list: write whole numbers from 1 on, each once, '
            'such as 1,8,32'
        )
    return counts


def parse_rates(text: str) -> tuple[float, ...]:
    """Rates above 0, such as ``5,20,0.5``, in their order.

    :raises ValueError: if it's something else
    """
    try:
        rates = tuple(map(float, text.split(',')))
    except ValueError:
        rates = ()
    good = all(math.isfinite(rate) and rate > 0 for rate in rates)
    if not rates or not good or len(set(rates)) < len(rates):
        raise ValueError(
            f'{text!r} is no list: write rates above 0, each once, such as '
            '5,20,100'
        )
    return rates


def parse_choices(text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Some of the words that are known, in the order of these.

    :raises ValueError: if there is another word, or none
    """
    words = [word.strip() for word in text.split(',')]
    unknown = [word for word in words if word not in known]
    if unknown:
        raise ValueError(
            f'{unknown[0]!r} is unknown: take some of {",".join(known)}'
        )
    return tuple(word for word in known if word in words)


def parse_rate(text: str) -> float:
    """A single rate above 0.

    :raises ValueError: if it's something else
    """
    rates = parse_rates(text)
    if len(rates) > 1:
        raise ValueError(f'{text!r} is no single rate: write one number')
    return rates[0]
