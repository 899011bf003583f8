"""Builds, binds, rewrites, projects and evaluates predicates; uses only the standard library."""
