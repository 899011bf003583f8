"""Encrypted files: keys, AES-GCM streams, and the stores that decrypt and encrypt."""
