"""HTTP routes of a hub besides `/acp`: the page and its login, `/healthz` and `/metrics`."""
