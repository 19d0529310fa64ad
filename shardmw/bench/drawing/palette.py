# SPDX-License-Identifier: Apache-2.0
"""Colours, dashes and marks that can be told apart. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

INK = '#24292f'  #: text and axes
FAINT = '#d8dee4'  #: the grid
PAPER = '#ffffff'
REFERENCE_COLOUR = '#767676'

# Those of Okabe and Ito, which people with any colour vision can tell apart,
# as far as they are dark enough for thin lines on white.
_COLOURS = (
    *('#37474f', '#0072b2', '#d55e00', '#009e73'),
    *('#aa4499', '#c78a00', '#3aa0dd'),
)
#: Behind lines, so light that these can be seen on each.
_BAND_COLOURS = (
    *('#e3e6e8', '#fbe3c0', '#cfe5f5', '#d6efe2', '#f0dcec', '#f6f0c4'),
    '#e2dcf5',
)
_DASHES = ('-', (0, (5, 1.6)))
_MARKERS = 'osD^vP*'


class Look(NamedTuple):
    """How a series is drawn.

    :param dash: a line style of matplotlib
    :param marker: a mark of matplotlib's
    """

    colour: str
    dash: object
    marker: str


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """A look for each label, in their order; what is the same looks the same.

    Fourteen can be told apart, then they come again.
    """
    distinct = dict.fromkeys(labels)
    # the first colour is for what others are compared with
    first = 1 if len(distinct) == 1 else 0
    return {label: _look(place) for place, label in enumerate(distinct, first)}


def band_colours(labels: Iterable[str]) -> dict[str, str]:
    """Return a colour for each label, in their order."""
    return {
        label: _BAND_COLOURS[place % len(_BAND_COLOURS)]
        for place, label in enumerate(dict.fromkeys(labels))
    }


def _look(place: int) -> Look:
    turn, colour = divmod(place, len(_COLOURS))
    return Look(
        _COLOURS[colour],
        _DASHES[turn % len(_DASHES)],
        # another mark than that of the same colour's solid line
        _MARKERS[(colour + 2 * turn) % len(_MARKERS)],
    )
