"""Predicates: built, bound, rewritten, projected and evaluated; standard library only."""
