"""Addresses: where an agent can be reached that runs elsewhere."""

from __future__ import annotations

ADDRESSES = ("ws://", "wss://", "http://", "https://")
