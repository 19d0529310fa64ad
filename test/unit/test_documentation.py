# SPDX-License-Identifier: Apache-2.0
"""The documentation: links, options, and the lines of logs."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from shardmw.backend.config import OPTION_NAMES, OPTION_PREFIXES

PROJECT = Path(__file__).parents[2]
PACKAGE = PROJECT / 'shardmw'
OPERATING = PROJECT / 'doc' / 'operating.md'
PAGES = [
    *(
        PROJECT / name
        for name in ('README.md', 'CONTRIBUTING.md', 'SECURITY.md')
    ),
    *(PROJECT / 'doc').glob('*.md'),
]

LINK = re.compile(r'\[[^]]*\]\(([^)#]*)(?:#([^)]*))?\)')
HEADING = re.compile(r'^#+ (.*)$', re.MULTILINE)
CODE = re.compile(r'^```.*?^```$', re.MULTILINE | re.DOTALL)

#: Modules that the filter and the operator's commands do not use.
TOOLS = ('bench', 'demo', 'saio')

#: The levels of the methods that log.
LEVELS = {
    'info': 'info',
    'warning': 'warning',
    'error': 'error',
    'exception': 'error',
}
PLACEHOLDER = re.compile(r'%(?:\.\d+)?[dfs]')
ANYTHING = '(.+)'

#: The placeholder of a reason from elsewhere, such as the operating system.
OTHERS = '...'

#: How many letters a text of the code needs to be recognized.
LEAST_LETTERS = 8


def lines_of(page: str, heading: str) -> list[list[str]]:
    """Return the rows of the first table below a heading."""
    _, found, section = page.partition(f'## {heading}\n')
    assert found, heading
    _, _, rest = section.partition('\n| --- ')
    body, _, _ = rest.partition('\n\n')
    return [
        [cell.strip() for cell in line.strip('| ').split(' | ')]
        for line in body.splitlines()[1:]
    ]


def anchors_of(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    text = CODE.sub('', page.read_text(encoding='utf-8'))
    return {
        re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-')
        for heading in HEADING.findall(text)
    }


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for path, anchor in LINK.findall(page.read_text(encoding='utf-8')):
        if '://' in path:
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors_of(target), anchor


def test_the_index_names_all_pages():
    index = (PROJECT / 'doc' / 'README.md').read_text()
    named = {path for path, _ in LINK.findall(index)}
    assert {p.name for p in (PROJECT / 'doc').glob('*.md')} <= {
        *named,
        'README.md',
    }


def test_each_defect_that_was_found_has_its_test():
    page = (PROJECT / 'doc' / 'reliability.md').read_text()
    for _, where in lines_of(page, 'What was found'):
        path, name = re.fullmatch('`(.*)`: `(.*)`', where).groups()
        assert f'def {name}(' in (PROJECT / path).read_text()


def test_the_readme_is_short():
    assert len((PROJECT / 'README.md').read_text().splitlines()) <= 200


def test_the_documented_options_are_those_that_exist():
    rows = lines_of(OPERATING.read_text(), 'Options')
    sized = [f'{prefix}SIZE' for prefix in OPTION_PREFIXES]
    assert sorted(name.strip('`') for name, *_ in rows) == sorted(
        [*OPTION_NAMES, *sized]
    )


class Format(NamedTuple):
    """A call that logs.

    :param module: the path of the module in the package
    """

    module: str
    level: str
    text: str

    def matches(self, line: str) -> re.Match | None:
        """Return the match if a line can come from this call."""
        parts = map(re.escape, PLACEHOLDER.split(self.text))
        return re.fullmatch(ANYTHING.join(parts), line)

    @property
    def letters(self) -> int:
        """Return the number of letters that all its lines have."""
        return count_letters(PLACEHOLDER.sub('', self.text))


def count_letters(text: str) -> int:
    return sum(map(str.isalpha, text))


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Yield the modules of the filter, its commands and the daemon."""
    for path in sorted(PACKAGE.rglob('*.py')):
        name = str(path.relative_to(PACKAGE))
        if not name.startswith(TOOLS):
            yield name, ast.parse(path.read_text())


def logged(module: str, tree: ast.Module) -> Iterator[Format]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr=method, value=logger),
                args=[ast.Constant(value=str(text)), *_],
            ) if method in LEVELS and ast.unparse(logger).endswith('logger'):
                yield Format(module, LEVELS[method], text)


def pattern_of(node: ast.expr) -> str:
    """Return the pattern of a string in the code, '' if it is none."""
    match node:
        case ast.Constant(value=str(text)):
            return re.escape(text)
        case ast.JoinedStr(values=values):
            return ''.join(pattern_of(value) or ANYTHING for value in values)
    return ''


def reasons(tree: ast.Module) -> Iterator[str]:
    """Yield the patterns of the reasons that a module gives for a 503."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id='BackendError'), args=[_, _, text]):
                yield pattern_of(text)


FORMATS = [each for name, tree in modules() for each in logged(name, tree)]
#: Lines that consist of values, such as an error, have no text of their own.
WORDED = [each for each in FORMATS if each.letters]
TEXTS = {
    pattern
    for _, tree in modules()
    for node in ast.walk(tree)
    if count_letters(pattern := pattern_of(node)) >= LEAST_LETTERS
}
#: Modules whose errors only the commands print.
COMMANDS = (
    *('admin/', 'reshard/changes', 'reshard/cluster'),
    'reshard/survey',
)
REASONS = {
    pattern
    for name, tree in modules()
    if not name.startswith(COMMANDS)
    for pattern in reasons(tree)
    if pattern
}

#: Modules of daemons that log. Their lines do not begin with shardmw.
DAEMONS = (
    'object_server/dark_data.py',
    *(
        f'reshard/{name}.py'
        for name in ('automatic', 'daemon', 'job', 'leftovers', 'scope')
    ),
)


def documented(heading: str) -> list[tuple[str, str]]:
    """Return the lines of a table, and their levels."""
    rows = lines_of(OPERATING.read_text(), heading)
    return [(line.strip('`'), level) for line, level, *_ in rows]


def with_prefix(line: str) -> str:
    return line if line.startswith('shardmw') else f'shardmw: {line}'


LINES = [
    *(
        (with_prefix(line), level)
        for line, level in documented(
            'Log lines of proxies and internal clients'
        )
    ),
    *documented('Log lines of container servers'),
    *documented('Log lines of object-auditors'),
    *documented('Log lines of shardmw-resharder'),
]
KNOWN_REASONS = [
    line.strip('`') for line, *_ in lines_of(OPERATING.read_text(), 'Reasons')
]


def origin_of(line: str) -> Format | None:
    """Return the call that a line comes from: that with the most letters."""
    is_daemons = not line.startswith('shardmw')
    found = [
        each
        for each in FORMATS
        if each.matches(line) and is_daemons == (each.module in DAEMONS)
    ]
    return max(found, key=lambda each: each.letters, default=None)


@pytest.mark.parametrize(('line', 'level'), LINES)
def test_a_documented_line_is_logged_at_its_level(line, level):
    origin = origin_of(line)
    assert origin is not None
    assert origin.level in level.split(' or ')
    if origin.text.endswith(': %s'):
        reason = line.rsplit(': ', 1)[1]
        assert reason == OTHERS or any(
            re.fullmatch(text, reason) for text in TEXTS
        )


@pytest.mark.parametrize(
    'origin', WORDED, ids=lambda each: f'{each.module} {each.text}'
)
def test_each_line_of_the_log_is_documented(origin):
    # Several modules of a daemon log the same line.
    found = [each for line, _ in LINES if (each := origin_of(line))]
    assert any(
        (each.text, each.level) == (origin.text, origin.level)
        for each in found
    )


@pytest.mark.parametrize('reason', KNOWN_REASONS)
def test_a_documented_reason_is_given_by_the_code(reason):
    assert any(re.fullmatch(text, reason) for text in TEXTS)


@pytest.mark.parametrize('pattern', sorted(REASONS))
def test_each_reason_is_documented(pattern):
    assert any(re.fullmatch(pattern, reason) for reason in KNOWN_REASONS)
