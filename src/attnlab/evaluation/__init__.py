"""Judging translations and looking at attention."""
