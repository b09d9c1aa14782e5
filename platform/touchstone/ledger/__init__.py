"""The hash chain over rows that nobody may change."""
