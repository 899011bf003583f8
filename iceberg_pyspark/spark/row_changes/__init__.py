"""Changed rows on their way to a snapshot: what a client asks for, and the commit."""
