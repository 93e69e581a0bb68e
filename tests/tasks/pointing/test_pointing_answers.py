"""Metrics of pointing against plain loops, and pictures of answers."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from attnlab.data import BatchOptions
from attnlab.data.symbols import EOS, RESERVED
from attnlab.errors import UserError
from attnlab.evaluation.evidence import Evidence, Prediction
from attnlab.evaluation.measurement import LengthBuckets, measure
from attnlab.evaluation.metric import Metric
from attnlab.evaluation.resampling import bootstrap
from attnlab.evaluation.significance.sample import sample_models
from attnlab.search import Hypothesis
from attnlab.tasks.pointing import ConvexHull, Delaunay, Pointing, Sort, Tours
from attnlab.tasks.pointing.answers import AreaCovered, Correct, SimplePolygons, TourExcess, TourLength, TrianglesFound
from attnlab.tasks.pointing.problems import Problems
from attnlab.tasks.predictor import predict_nothing

SQUARE = "0,0 1,0 1,1 0,1"


def evidence(problems: Problems, lines: list[tuple[str, str, str]]) -> Evidence:
    """Sources, right answers and predictions."""
    task = Pointing(problems, BatchOptions(), {})
    sources, references, found = zip(*lines, strict=True)
    examples = task.parse(sources, references)
    hypotheses = [[*(RESERVED + int(token) for token in line.split()), EOS] for line in found]
    predictions = [
        task.read(Hypothesis(tokens, 0.0, 0.0, torch.zeros(len(tokens), 5)), examples, index)
        for index, tokens in enumerate(hypotheses)
    ]
    assert [prediction.text for prediction in predictions] == list(found)
    return Evidence(predictions, references, [None] * len(predictions), task.facts)


def value(metric: Metric, *seen: Evidence) -> float:
    rows = [metric.statistics(one) for one in seen]
    assert all(row is not None for row in rows)
    total = np.concatenate([row for row in rows if row is not None]).sum(axis=0)
    told, (always,) = metric.value(total), metric.values(total[None])
    assert always == pytest.approx(told, nan_ok=True) or math.isnan(told)
    return told


def test_hulls() -> None:
    right, triangle, crossed = ((SQUARE, "0 1 2 3", found) for found in ("2 1 0 3", "0 1 2", "0 2 1 3"))
    some = evidence(ConvexHull(), [right, triangle, crossed])
    assert value(Correct(), some) == pytest.approx(100 / 3)
    assert value(SimplePolygons(), some) == pytest.approx(200 / 3)
    assert math.isnan(value(AreaCovered(), some)), "a third is no simple polygon"
    assert value(AreaCovered(), evidence(ConvexHull(), [right, triangle])) == pytest.approx(75.0)
    hundred = evidence(ConvexHull(), [right] * 98 + [triangle, crossed])
    assert value(AreaCovered(), hundred) == pytest.approx(100 * (98 + 0.5) / 99)
    assert math.isnan(value(AreaCovered(), evidence(ConvexHull(), [right] * 97 + [crossed] * 2)))


@pytest.mark.parametrize("crossing", [4, 5])
def test_the_area_varies_with_the_answers_and_not_with_the_share_from_which_it_is_told(crossing: int) -> None:
    """Without one of the valid answers, or in another sample of all, less than 99 % may be valid."""
    answers = [
        (SQUARE, "0 1 2 3", found) for found in ["2 1 0 3"] * 400 + ["0 1 2"] * (100 - crossing) + ["0 2 1 3"] * crossing
    ]
    metric = AreaCovered()
    rows = metric.statistics(evidence(ConvexHull(), answers))
    assert rows is not None
    valid = 500 - crossing
    areas = np.array([100.0] * 400 + [50.0] * (100 - crossing))
    jackknife = 499 / 500 * valid * (areas.std() / (valid - 1)) ** 2
    assert sample_models(metric, [rows]).covariance == pytest.approx(jackknife, rel=1e-2)
    drawn = metric.values(bootstrap(rows, 500, 1))
    assert np.isfinite(drawn).all()


def test_where_too_few_answers_are_valid_there_is_no_interval_and_no_value_by_length() -> None:
    right, crossed = (SQUARE, "0 1 2 3", "0 1 2 3"), (SQUARE, "0 1 2 3", "0 2 1 3")
    some = evidence(ConvexHull(), [right] * 6 + [crossed])
    (found,), (rows,) = (each.values() for each in measure({"area": AreaCovered()}, some, "test", samples=20))
    assert math.isnan(found.value)
    assert (found.low, found.high) == (None, None)
    short, long = LengthBuckets([4] * 5 + [8] * 2).measure(AreaCovered(), rows)
    assert short.value == pytest.approx(100)
    assert math.isnan(long.value)


def test_tours() -> None:
    longer = 2 + 2 * math.sqrt(2)
    some = evidence(Tours(), [(SQUARE, "0 1 2 3", "2 1 0 3"), (SQUARE, "0 1 2 3", "0 2 1 3")])
    assert value(Correct(), some) == 50.0
    assert value(TourLength(), some) == pytest.approx((4 + longer) / 2)
    assert value(TourExcess(), some) == pytest.approx(100 * (longer / 4 - 1) / 2)
    assert math.isnan(value(TourLength(), evidence(Tours(), [(SQUARE, "0 1 2 3", "0 1 2")])))


def test_answers_beside_which_nothing_is_measured() -> None:
    """The area of a polygon is positive in either direction; a line has none, and a point is no tour."""
    clockwise, line = (SQUARE, "3 2 1 0", "0 1 2"), (SQUARE, "0 1", "0 1 2")
    assert value(AreaCovered(), evidence(ConvexHull(), [clockwise])) == pytest.approx(50)
    assert math.isnan(value(AreaCovered(), evidence(ConvexHull(), [line])))
    assert math.isnan(value(TourExcess(), evidence(Tours(), [(SQUARE, "0", "0 1 2 3")])))


def test_triangulations() -> None:
    points = f"{SQUARE} 0.4,0.3"
    right = "0 3 4 0 1 4 2 3 4 1 2 4"
    some = evidence(Delaunay(), [(points, right, "4 2 1 0 1 2 0 4"), (SQUARE, "0 1 2 0 2 3", "2 3 0 0 1 2")])
    assert value(Correct(), some) == 50.0
    assert value(TrianglesFound(), some) == pytest.approx(100 * (1 + 2) / (4 + 2))


def test_a_metric_is_about_its_own_problem() -> None:
    order = evidence(Sort(), [("0.5 0.1", "1 0", "1 0"), ("0.5 0.1", "1 0", "0 1")])
    assert value(Correct(), order) == 50.0
    for metric in (AreaCovered(), SimplePolygons(), TourLength(), TourExcess(), TrianglesFound()):
        assert metric.statistics(order) is None
    assert Correct().statistics(Evidence([predict_nothing(0)], [""], [None], order.facts)) is None


def predicted(text: str) -> Prediction:
    return Prediction(0, text, [], [], torch.zeros(0, 0), 0.0, 0.0)


@pytest.mark.parametrize(
    ("problems", "answer", "reference", "lines"),
    [
        (ConvexHull, "0 1 2", "0 1 2 3", 2),
        (ConvexHull, "1 2 3 0", "0 1 2 3", 1),
        (Tours, "0 1 2 3", None, 1),
        (Delaunay, "0 1 2 0 2 3", "0 1 2 0 2 3", 2),
        (ConvexHull, "", "0 1 2 3", 1),
    ],
)
def test_answers_are_drawn(problems: Callable[[], Problems], answer: str, reference: str | None, lines: int) -> None:
    """Polygons of the prediction, of the right answer if it is another, and the points."""
    axes = Figure().add_subplot()
    Pointing(problems(), BatchOptions(), {}).draw_prediction(axes, SQUARE, predicted(answer), reference)
    *polygons, points = axes.get_lines()
    assert len(polygons) == lines
    assert len(points.get_xdata()) == 4  # type: ignore[arg-type]
    last = list(map(tuple, np.stack(polygons[-1].get_data(), axis=1).tolist()))
    corners = [(0, 0), (1, 0), (1, 1), (0, 1)]
    wanted = [corners[int(token)] for token in (answer or str(reference)).split()][-3 if problems is Delaunay else 0 :]
    assert last == [*wanted, *wanted[:1]]


def test_numbers_are_not_drawn() -> None:
    with pytest.raises(UserError, match="a problem of sort has no points"):
        Pointing(Sort(), BatchOptions(), {}).draw_prediction(Figure().add_subplot(), "0.5 0.1", predicted("1 0"))
