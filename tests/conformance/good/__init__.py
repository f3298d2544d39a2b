"""Exemplary peers for the tests of the judge, written by hand with the standard library only.

They share no code with the product. A deliberately broken peer is a subclass that overrides one method.
"""
