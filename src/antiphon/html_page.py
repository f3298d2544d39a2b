"""The beginning of an HTML file that runs nothing and loads nothing. Its content security policy says so."""

from __future__ import annotations

import base64
import hashlib
from html import escape


def page_head(title: str, style: str, *, images: bool = False) -> str:
    """Return a page up to the beginning of its body.

    `title` is HTML and `style` is CSS. With `images`, the page may show the images that it contains.
    """
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    shown = " img-src data:;" if images else ""
    policy = f"default-src 'none';{shown} style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n"
    )
