"""Plans of maintenance: what would be removed and why it may be, what would be written anew."""
