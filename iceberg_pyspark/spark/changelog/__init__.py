"""Changelogs: the metadata table `changes` with what means nothing taken out, as plans of Spark."""
