"""Changelogs: the net effect of the rows of the metadata table `changes`, as Spark plans."""
