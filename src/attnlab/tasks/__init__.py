"""Tasks: one folder each, with its data, frontends, metrics and predictions."""
