"""What `make generate` runs: the Java side of the protocol, reference pages and charts."""
