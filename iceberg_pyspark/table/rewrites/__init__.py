"""Files and manifests written anew: the table has the same rows before and after."""
