"""`make verdicts`: judge Antiphon and everybody else who can be had, and write docs/verdicts.md."""
