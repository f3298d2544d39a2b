"""Transports: they move frames between two peers and know no method. `antiphon.wire` exports them."""
