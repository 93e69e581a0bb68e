"""Quality by the length of the source, of many runs."""

from collections.abc import Sequence

from attnlab.evaluation.measurement import Bucket, measure_by_length
from attnlab.evaluation.metric import Metric
from attnlab.studies.collection import Run


def measure_runs_by_length(runs: Sequence[Run], test: str, name: str, metric: Metric) -> list[list[Bucket]]:
    """Return a metric of each run's examples of similar source length; empty where what they add is not known."""
    known = {place: found for place, run in enumerate(runs) if (found := run.statistics(test, name)) is not None}
    systems = [(runs[place].length_buckets(test), statistics) for place, statistics in known.items()]
    measured = dict(zip(known, measure_by_length(metric, systems), strict=True))
    return [measured.get(place, []) for place in range(len(runs))]
