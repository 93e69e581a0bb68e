"""Studies: how their runs are planned, tuned, carried out, compared and reported."""
