"""How a page looks: one column, one accent, by day and by night."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fcfbf9; --raised: #f4f2ee; --ink: #22252a; --soft: #676b73; --line: #e4e1da;
  --accent: #0b6b60; --tint: #eaf3f1; --good: #2f7d4f; --bad: #b3372f;
  --add: #e4f3e6; --add-ink: #1f5c33; --del: #fbe7e4; --del-ink: #8c2a22;
  --term: #20242a; --term-ink: #dfe3e8;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #15181c; --raised: #1d2126; --ink: #dee1e5; --soft: #979da6; --line: #2c3138;
    --accent: #62c1b1; --tint: #18292a; --good: #6cc08b; --bad: #ee8a80;
    --add: #173022; --add-ink: #9fdcb3; --del: #3a1f1e; --del-ink: #f2b1a9;
    --term: #0e1013; --term-ink: #d5dae0;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 4rem 1.5rem 5rem; max-width: 48rem; background: var(--paper); color: var(--ink);
  font: 1.0625rem/1.65 ui-sans-serif, system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif;
  overflow-wrap: anywhere;
}
code, pre, .command, .where, .file { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
a { color: var(--accent); text-underline-offset: .18em; text-decoration-thickness: from-font; }
img { max-width: 100%; height: auto; border-radius: .5rem; }
.top { border-bottom: 1px solid var(--line); padding-bottom: 1.75rem; margin-bottom: 2.5rem; }
h1 { font-size: 2rem; line-height: 1.2; letter-spacing: -.02em; font-weight: 650; margin: 0 0 1.25rem; text-wrap: balance; }
dl { display: flex; flex-wrap: wrap; gap: .75rem 2rem; margin: 0; font-size: .875rem; line-height: 1.4; }
dt { color: var(--soft); font-size: .75rem; margin-bottom: .1rem; }
dd { margin: 0; font-variant-numeric: tabular-nums; }
main > * { margin: 0 0 1rem; }
.who { color: var(--soft); font-size: .8125rem; font-weight: 600; margin: 1.75rem 0 .375rem; display: flex; gap: .75rem; align-items: baseline; }
.who time { flex: none; font-weight: 400; font-variant-numeric: tabular-nums; }
.user { background: var(--tint); border-radius: .75rem; padding: .875rem 1.25rem 1rem; margin: 2.75rem 0 1.25rem; }
main > .user:first-child { margin-top: 0; }
.user .who { margin: 0 0 .25rem; color: var(--accent); }
.user .who time { color: var(--soft); }
.prose > :first-child { margin-top: 0; }
.prose > :last-child { margin-bottom: 0; }
.prose p, .prose ul, .prose ol, .prose blockquote, .prose table { margin: 0 0 .875rem; }
.prose h1, .prose h2, .prose h3, .prose h4, .prose h5, .prose h6 { font-size: 1.0625rem; line-height: 1.35; letter-spacing: 0; margin: 1.5rem 0 .5rem; font-weight: 650; }
.prose h1 { font-size: 1.3125rem; letter-spacing: -.01em; }
.prose h2 { font-size: 1.1875rem; }
.prose ul, .prose ol { padding-left: 1.4rem; }
.prose li { margin: .2rem 0; }
.prose li::marker { color: var(--soft); }
.prose blockquote { border-left: 3px solid var(--line); padding-left: 1rem; color: var(--soft); }
.prose hr { border: 0; border-top: 1px solid var(--line); margin: 1.5rem 0; }
.prose code { background: var(--raised); border-radius: .25rem; padding: .1em .3em; font-size: .875em; }
.user .prose code { background: var(--paper); }
.prose pre code { background: none; padding: 0; font-size: inherit; }
.prose table { border-collapse: collapse; display: block; overflow-x: auto; font-size: .9375rem; }
.prose th, .prose td { text-align: left; padding: .35rem 1rem .35rem 0; border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums; }
.prose th { color: var(--soft); font-weight: 600; }
.prose .right { text-align: right; }
.prose .center { text-align: center; }
pre { margin: 0 0 .875rem; padding: .75rem 1rem; background: var(--raised); border-radius: .5rem; font-size: .8125rem; line-height: 1.55; overflow-x: auto; tab-size: 4; }
pre.plain { white-space: pre-wrap; }
summary { cursor: pointer; list-style: none; }
summary::-webkit-details-marker { display: none; }
summary:focus-visible, a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: .25rem; }
.thought { color: var(--soft); font-size: .9375rem; margin: 0 0 .5rem; }
.thought summary { font-size: .875rem; font-weight: 600; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.thought summary::before { content: ""; display: inline-block; width: .35rem; height: .35rem; border: solid var(--soft); border-width: 0 1.5px 1.5px 0; transform: rotate(-45deg); margin: 0 .5rem .1rem 0; }
.thought[open] summary::before { transform: rotate(45deg); }
.thought summary span { font-weight: 400; margin-left: .375rem; opacity: .85; }
.thought[open] summary { margin-bottom: .375rem; }
.thought[open] summary span { display: none; }
.thought > :not(summary) { border-left: 2px solid var(--line); padding-left: 1rem; }
.call { font-size: .875rem; line-height: 1.5; border: 1px solid var(--line); border-radius: .5rem; margin: 0 0 .5rem; }
.call + :not(.call) { margin-top: 1.25rem; }
div.call, .call > summary { display: flex; gap: .625rem; align-items: baseline; padding: .4375rem .875rem; }
.call > summary::after { content: ""; margin-left: auto; align-self: center; flex: none; width: .4rem; height: .4rem; border: solid var(--soft); border-width: 0 1.5px 1.5px 0; transform: rotate(-45deg); }
.call[open] > summary::after { transform: rotate(45deg) translate(-1px, -1px); }
.mark { flex: none; font-weight: 700; color: var(--soft); }
.good .mark { color: var(--good); }
.bad .mark { color: var(--bad); }
.kind { flex: none; color: var(--soft); }
.what { min-width: 0; }
.command { font-size: .8125rem; }
.call .where { margin: 0; font-size: .75rem; min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.call .body .where { margin: 0 0 .5rem; font-size: .8125rem; white-space: pre-line; }
.body { border-top: 1px solid var(--line); padding: .75rem .875rem; }
.body > :last-child { margin-bottom: 0; }
.body pre { background: var(--raised); }
.where, .asked { margin: 0 0 .5rem; font-size: .8125rem; color: var(--soft); white-space: pre-line; }
pre.diff { padding: .5rem 0; }
.diff span { display: block; padding: 0 1rem; min-width: max-content; white-space: pre; }
.diff .add { background: var(--add); color: var(--add-ink); }
.diff .del { background: var(--del); color: var(--del-ink); }
.diff .hunk { color: var(--soft); }
pre.terminal, .body pre.terminal { background: var(--term); color: var(--term-ink); white-space: pre-wrap; }
.terminal b { font-weight: 600; color: #8fd3c6; }
.exit { display: block; margin-top: .25rem; color: #f0a39a; }
.plan { border: 1px solid var(--line); border-radius: .5rem; padding: .75rem 1.125rem .875rem; margin: 1.25rem 0; font-size: .9375rem; }
.plan h2 { font-size: .875rem; font-weight: 600; margin: 0 0 .375rem; }
.plan h2 span { color: var(--soft); font-weight: 400; margin-left: .375rem; font-variant-numeric: tabular-nums; }
.plan ul { list-style: none; margin: 0; padding: 0; }
.plan li { display: flex; gap: .625rem; padding: .125rem 0; }
.plan .box { color: var(--soft); flex: none; }
.plan .completed .box, .plan .in_progress .box { color: var(--accent); }
.plan .completed, .plan .cancelled { color: var(--soft); }
.plan .cancelled span + span { text-decoration: line-through; }
.file { font-size: .8125rem; }
.note { font-size: .875rem; color: var(--soft); border-left: 2px solid var(--line); padding-left: .875rem; }
.note b { color: var(--ink); font-weight: 600; }
.ended { display: flex; align-items: center; gap: 1rem; color: var(--soft); font-size: .8125rem; font-variant-numeric: tabular-nums; margin: 1.75rem 0; }
.ended::after { content: ""; flex: 1; border-top: 1px solid var(--line); }
footer { margin-top: 4rem; padding-top: 1rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .8125rem; }
@media (max-width: 36rem) {
  body { padding: 2rem 1rem 3rem; font-size: 1rem; }
  h1 { font-size: 1.5rem; }
  dl { gap: .625rem 1.5rem; }
  .user { padding: .75rem 1rem; margin-top: 2rem; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 11pt; }
  .call, .user, .plan { break-inside: avoid; }
}
"""  # noqa: E501
