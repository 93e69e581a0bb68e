"""The groups of metrics in conf/: every option, and one of a user's own."""

from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from attnlab.evaluation.metric import OCCASIONS, PERCENT, Metric
from conftest import CONF, options

EPOCH = {
    "translation": {"bleu", "character_loss", "punctuation"},
    "common": {"exact", "loss", "perplexity", "accuracy", "entropy", "relative_entropy", "largest_weight", "coverage"}
    | {"monotonicity", "end_weight"},
}
EPOCH["translation"] |= EPOCH["common"]
EPOCH["comet"] = EPOCH["translation"]
EPOCH["questions"] = EPOCH["common"]
EPOCH["pointing"] = EPOCH["common"] | {"correct"}
EPOCH["forecasting"] = {"mse", "mae", "crps", "interval_coverage", "interval_width"}
EPOCH["forecasting"] |= {"entropy", "relative_entropy", "largest_weight", "monotonicity"}

MINE = """\
from attnlab.evaluation.metric import Ratio
from attnlab.evaluation.metrics import statistics_of


class Mine(Ratio):
    label = "words"

    def statistics(self, evidence):
        return statistics_of(evidence.predictions, lambda found: (len(found.text.split()), 1))
"""


def metrics(option: str, folder: Path = CONF) -> dict[str, Metric]:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose(overrides=[f"+metrics={option}", f"hydra.searchpath=[file://{folder}]"])
    return {str(name): instantiate(node) for name, node in config.metrics.items()}


@pytest.mark.parametrize("option", options("metrics"))
def test_every_option_is_metrics_by_name_that_tables_can_tell_apart(option: str) -> None:
    made = metrics(option)
    assert len({metric.label for metric in made.values()}) == len(made)
    assert all(metric.occasion in OCCASIONS and metric.digits >= 0 for metric in made.values())
    assert {name for name, metric in made.items() if metric.is_due("epoch")} == EPOCH[option]
    for name, metric in made.items():
        low, high = metric.limits
        assert low < high
        # Edits may be more than words, and tours more than twice as long as they need be.
        assert ((low, high) == PERCENT) == (
            (metric.unit == "%" and name not in ("ter", "tour_excess")) or "BLEU" in metric.label or name == "chrf"
        )


def test_a_metric_of_ones_own_is_a_class_and_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mymodule.py").write_text(MINE)
    (tmp_path / "conf" / "metrics").mkdir(parents=True)
    (tmp_path / "conf" / "metrics" / "mine.yaml").write_text("defaults: [translation]\nmine: {_target_: mymodule.Mine}\n")
    monkeypatch.syspath_prepend(tmp_path)
    made = metrics("mine", tmp_path / "conf")
    assert set(made) == {*metrics("translation"), "mine"}
    assert made["mine"].label == "words"
