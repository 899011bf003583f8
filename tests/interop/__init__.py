"""Tables of Iceberg's Java runtime and of PyIceberg read by us, and ours read by them."""
