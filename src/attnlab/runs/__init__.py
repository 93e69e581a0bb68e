"""Runs: one model trained and tested in a folder of its own."""
