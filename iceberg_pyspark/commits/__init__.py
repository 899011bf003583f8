"""From changes to metadata: updates, requirements, conflicts; pure."""
