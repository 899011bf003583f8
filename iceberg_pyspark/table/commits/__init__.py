"""Changes a table: from the request to the catalog's swap of the metadata pointer."""
