"""The progress of Spark jobs: a bar, descriptions of jobs and counts of tasks."""
