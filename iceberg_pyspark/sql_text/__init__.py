"""Parses SQL text: filters, types, transforms, sort orders, statements."""
