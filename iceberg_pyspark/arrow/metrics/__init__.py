"""Column metrics: counts and bounds."""
