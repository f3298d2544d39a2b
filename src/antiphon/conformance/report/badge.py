"""The report as a badge: a small SVG for a README."""

from __future__ import annotations

from html import escape

from antiphon.conformance.verdicts import Outcome, Report

GOOD, FAIR, BAD = "#2f7d4f", "#a86a00", "#b3372f"
HEIGHT = 20
_NARROW, _WIDE = "ijltfI.,:;|!' ()1", "mwMW@%"


def to_badge(report: Report) -> str:
    """Return a badge as SVG: the versions, and how many of the decided requirements are kept."""
    counts = report.counts()
    decided = counts[Outcome.PASS] + counts[Outcome.FAIL] + counts[Outcome.WARN]
    label = f"ACP {report.party} v{'+v'.join(map(str, report.versions)) or '?'}"
    value = f"{counts[Outcome.PASS]} of {decided} kept" if decided else "not judged"
    if counts[Outcome.FAIL] or report.faults:
        colour = BAD
    else:
        colour = GOOD if decided and not counts[Outcome.WARN] else FAIR
    return _svg(label, value, colour)


def _svg(label: str, value: str, colour: str) -> str:
    left, right = _width(label), _width(value)
    whole = left + right
    label, value = escape(label), escape(value)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{HEIGHT}" role="img" '
        f'aria-label="{label}: {value}">\n'
        f"<title>{label}: {value}</title>\n"
        f'<clipPath id="r"><rect width="{whole}" height="{HEIGHT}" rx="4"/></clipPath>\n'
        f'<g clip-path="url(#r)"><rect width="{left}" height="{HEIGHT}" fill="#3b4048"/>'
        f'<rect x="{left}" width="{right}" height="{HEIGHT}" fill="{colour}"/></g>\n'
        '<g fill="#fff" text-anchor="middle" font-size="11" '
        'font-family="Verdana,DejaVu Sans,Geneva,sans-serif">'
        f'<text x="{left / 2:g}" y="14">{label}</text>'
        f'<text x="{left + right / 2:g}" y="14">{value}</text></g>\n'
        "</svg>\n"
    )


def _width(text: str) -> int:
    """Estimate the width of a text at 11 pixels, with a margin."""
    return 12 + round(sum(4 if char in _NARROW else 10 if char in _WIDE else 7 for char in text))
