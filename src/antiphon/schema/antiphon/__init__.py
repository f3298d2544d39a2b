"""Antiphon's protocol: `_antiphon/…` methods, `_antiphon_…` updates and `_meta["antiphon"]` objects.

One module per topic of `docs/extensions.md`. The tables of that page are generated from the docstrings of the
fields: `python -m tools.extensions_page`.
"""
