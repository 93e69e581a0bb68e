"""Which values of a study compare: those of one form, of the same examples."""

from attnlab.studies.collection import Study


def signatures(study: Study, metric: str, test: str) -> list[str]:
    """Return what must agree for the values of a metric on a test set to be compared, in each form that there is."""
    runs = (run for run in study.finished_runs if run.value(test, metric) is not None)
    return sorted({run.result.signature(test, metric) for run in runs})


def is_comparable(study: Study, metric: str, *tests: str) -> bool:
    """Tell whether the values of a metric are of one form and of the same examples: nothing else is ranked.

    Args:
        study: with finished runs.
        metric: its name.
        tests: names of the test sets; none asks for all of them, by which the validation set is judged too.
    """
    asked = tests or study.tests
    return all(len(signatures(study, metric, test)) <= 1 and has_same_examples(study, test) for test in asked)


def has_same_examples(study: Study, test: str) -> bool:
    """Tell whether all runs of a seed were tested on the same examples, and all variants on the same ones."""
    by_seed: dict[int, set[str]] = {}
    seeds = set()
    for runs in study.finished_variants.values():
        tested = [run for run in runs if test in run.result.tests]
        seeds |= {frozenset(run.seed for run in tested)} if tested else set()
        for run in tested:
            by_seed.setdefault(run.seed, set()).add(run.example_order(test)[0])
    return all(len(digests) == 1 for digests in by_seed.values()) and (
        len(seeds) <= 1 or len(set[str]().union(*by_seed.values())) <= 1
    )


def has_data_by_seed(study: Study) -> bool:
    """Tell whether each seed has data of its own, the same for all variants."""
    data: dict[int, set[str]] = {}
    for run in study.finished_runs:
        data.setdefault(run.seed, set()).add(run.result.data)
    return len(data) > 1 and sum(map(len, data.values())) == len(data) == len(set[str]().union(*data.values()))
