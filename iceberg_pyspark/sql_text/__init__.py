"""Pieces of SQL text: filters, types, transforms, sort orders, statements."""
