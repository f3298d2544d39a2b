"""The session: pure, v2 vocabulary only. Commands return what to append; `Session.apply` folds it."""
