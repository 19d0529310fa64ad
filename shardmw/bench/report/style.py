# SPDX-License-Identifier: Apache-2.0
"""How the HTML page looks: on light and dark screens, and on paper."""

STYLE = """\
:root {
  color-scheme: light dark;
  --ink: #24292f; --faint: #59636e; --paper: #ffffff; --ground: #f6f8fa;
  --rule: #d1d9e0; --link: #0b62b4; --stripe: #f6f8fa;
  --warn-ink: #6b4a00; --warn: #fff6dc; --warn-rule: #d9a400;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e6edf3; --faint: #9aa4af; --paper: #12161c; --ground: #1b2129;
    --rule: #343c46; --link: #6cb2f7; --stripe: #181d24;
    --warn-ink: #f3d58a; --warn: #33290f; --warn-rule: #a67c00;
  }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 2.5rem 1.25rem 5rem; max-width: 78rem;
  background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto,
    "Helvetica Neue", Arial, sans-serif;
}
h1, h2, h3 { line-height: 1.25; margin: 0; }
h1 { font-size: 2rem; letter-spacing: -0.01em; }
h2 { font-size: 1.5rem; }
h3 { font-size: 1.05rem; margin-bottom: 0.5rem; }
p { margin: 0 0 0.75rem; max-width: 48rem; }
a { color: var(--link); text-underline-offset: 0.15em; }
code { font: 0.9em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.lead { font-size: 1.1rem; color: var(--faint); margin: 0.25rem 0 1rem; }

.origin {
  background: var(--ground); border: 1px solid var(--rule);
  border-radius: 8px; padding: 0.9rem 1.1rem; margin: 0 0 1rem;
}
.origin p { margin-bottom: 0.6rem; }
.origin dl { display: flex; flex-wrap: wrap; gap: 0.6rem 2.2rem; margin: 0; }
.origin dt { font-size: 0.8rem; color: var(--faint); }
.origin dd { margin: 0; font-weight: 500; }

nav { margin: 2rem 0 0; }
nav h2 { font-size: 1.05rem; margin-bottom: 0.5rem; }
nav ol { margin: 0; padding-left: 2rem; }
nav li { margin: 0.2rem 0; }
.said { color: var(--faint); }
.said::before { content: "\\2013\\00a0"; }
.mark {
  font-size: 0.78rem; padding: 0.05rem 0.5rem; border-radius: 1rem;
  background: var(--warn); color: var(--warn-ink);
  border: 1px solid var(--warn-rule);
}

section {
  border-top: 1px solid var(--rule); margin-top: 2.75rem; padding-top: 2rem;
}
.warning, .published { padding: 0.6rem 0.9rem; border-radius: 6px; }
.warning {
  background: var(--warn); color: var(--warn-ink);
  border-left: 4px solid var(--warn-rule);
}
.published { background: var(--ground); border-left: 4px solid var(--rule); }

.table { margin: 1.5rem 0; }
.wide { overflow-x: auto; margin-bottom: 0.6rem; }
table {
  border-collapse: collapse; font-size: 0.9rem;
  font-variant-numeric: tabular-nums;
}
th, td { padding: 0.32rem 0.7rem; text-align: left; vertical-align: top; }
td { white-space: nowrap; }
th {
  color: var(--faint); font-weight: 600; line-height: 1.3;
  vertical-align: bottom;
}
thead th { border-bottom: 2px solid var(--rule); }
tbody td { border-bottom: 1px solid var(--rule); }
tbody tr:nth-child(even) { background: var(--stripe); }
.number { text-align: right; }
.note, figcaption { font-size: 0.875rem; color: var(--faint); }

.plots {
  display: grid; gap: 1.25rem; margin: 1.5rem 0; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 30rem), 1fr));
}
figure { margin: 0; }
.card {
  background: #ffffff; border: 1px solid var(--rule); border-radius: 8px;
  padding: 0.4rem; overflow: hidden;
}
.card svg { display: block; width: 100%; height: auto; }
figcaption { margin: 0.35rem 0.25rem 0; }
.parameters { font-size: 0.85rem; color: var(--faint); max-width: none; }
.parameters span { white-space: nowrap; margin-right: 0.9rem; }
.parameters b { font-weight: 600; }

@media (max-width: 40rem) {
  body { padding: 1.25rem 0.9rem 3rem; }
  .parameters span { white-space: normal; }
}
@media print {
  :root {
    color-scheme: light;
    --ink: #000000; --faint: #444444; --paper: #ffffff; --ground: #ffffff;
    --rule: #bbbbbb; --link: #000000; --stripe: #ffffff;
    --warn-ink: #000000; --warn: #ffffff;
  }
  html { font-size: 12px; }
  body { max-width: none; padding: 0; font-size: 1rem; }
  a { text-decoration: none; }
  h2, h3 { break-after: avoid; }
  tr, figure, .origin { break-inside: avoid; }
  table { font-size: 0.85rem; }
  th, td { padding: 0.15rem 0.45rem; white-space: normal; }
  .wide { overflow: visible; }
  .plots { grid-template-columns: 1fr 1fr; gap: 0.75rem; }
}
"""
