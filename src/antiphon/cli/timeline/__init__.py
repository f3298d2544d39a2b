"""Timelines of recordings and journals: who said what, and when."""
