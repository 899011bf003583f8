"""Helpers for several test folders: Spark sessions, the Java oracle, TPC-H data, plain rows."""
