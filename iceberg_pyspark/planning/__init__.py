"""Plans scans: prunes manifests and files, matches deletes with files, splits and packs tasks."""
