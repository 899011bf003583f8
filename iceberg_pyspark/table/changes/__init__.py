"""Changes of a table, from the request to the catalog's swap."""
