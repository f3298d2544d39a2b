"""The work of `antiphon check`, `tap` and `log`."""
