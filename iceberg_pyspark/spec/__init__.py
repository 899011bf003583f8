"""The specification as values and pure functions: standard library only, no file, clock or
chance.
"""
