"""The procedures that CALL runs, in the namespace `system` of each catalog."""
