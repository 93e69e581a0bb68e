"""Judging predictions and looking at attention."""
