"""Is one system better than another, or was it luck? See docs/statistics.md."""
