"""Widgets of the session screen."""
