"""Runs and studies: what identifies a run, how it is carried out, how runs are compared."""
