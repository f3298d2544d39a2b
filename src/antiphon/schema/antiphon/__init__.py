"""Our own protocol: the `_antiphon/…` methods, the `_antiphon_…` updates and the `_meta["antiphon"]` objects.

One module per topic of `docs/extensions.md`. The tables of that page are made from the docstrings of the
fields here: `python -m tools.extensions_page`.
"""
