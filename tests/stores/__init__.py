"""Tables in object stores, on real servers."""
