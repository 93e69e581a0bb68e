"""Quality by the length of the source, of many runs."""

from collections import defaultdict
from collections.abc import Sequence

from attnlab.evaluation.measurement import Bucket, LengthBuckets
from attnlab.evaluation.metric import Metric, Statistics
from attnlab.studies.run import Run


def measure_runs_by_length(runs: Sequence[Run], test: str, name: str, metric: Metric) -> list[list[Bucket]]:
    """Return a metric of each run's examples of similar source length; empty where what they add is not known."""
    measured: list[list[Bucket]] = [[] for _ in runs]
    alike: dict[tuple[LengthBuckets, int], dict[int, Statistics]] = defaultdict(dict)
    for place, run in enumerate(runs):
        if (statistics := run.statistics(test, name)) is not None:
            alike[run.length_buckets(test), statistics.shape[1]][place] = statistics
    for (buckets, _), systems in alike.items():
        for place, found in zip(systems, buckets.measure_systems(metric, [*systems.values()]), strict=True):
            measured[place] = found
    return measured
