"""Tuning every variant of a study by as many trials, before its runs."""
