"""Series from files: what is read, how it is split and standardised, and what is wrong with a file."""

import gzip
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from attnlab.data.batches import BatchOptions
from attnlab.errors import UserError
from attnlab.tasks.forecasting import Ett, Forecasting, Lags, SeriesFile, SeriesSource
from attnlab.tasks.forecasting.series import calendar_features, next_times, read_table, step_between
from attnlab.tasks.forecasting.windows import Scale, lag_links

GOOD = "time,a,b,c\n" + "".join(f"2020-01-{day:02} 06:00,{day},{day * day % 7},{-day}\n" for day in range(1, 31))


def task(data: SeriesSource) -> Forecasting:
    return Forecasting(data, BatchOptions(), {})


def test_columns_come_in_the_order_asked_for_and_the_rest_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "series.csv.gz"
    path.write_bytes(gzip.compress(GOOD.encode()))
    table = SeriesFile(path=str(path), time="time", targets=["c"], covariates=["a"]).load().table
    assert (table.names, table.num_targets) == (("c", "a"), 1)
    assert table.values[:2].tolist() == [[-1.0, 1.0], [-2.0, 2.0]]
    usual = SeriesFile(path=str(path), time="time", covariates=["a"]).load().table
    assert (usual.names, usual.num_targets) == (("b", "c", "a"), 2)


def test_a_file_without_names_numbers_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "series.txt"
    path.write_text("1.5,2\n3,4\n")
    table = SeriesFile(path=str(path), header=False, targets=["1"]).load().table
    assert (table.names, table.values.tolist()) == (("1",), [[2.0], [4.0]])


def test_the_calendar_by_hand() -> None:
    features = calendar_features([datetime(2020, 12, 31, 23), datetime(2018, 1, 1)])
    np.testing.assert_allclose(features, [[0.5, 3 / 6 - 0.5, 0.5, 0.5], [-0.5, -0.5, -0.5, -0.5]])


def test_windows_hold_the_rows_before_and_after_and_never_what_is_to_be_forecast(tmp_path: Path) -> None:
    path = tmp_path / "series.csv"
    path.write_text(GOOD)
    data = SeriesFile(path=str(path), time="time", targets=["a"], covariates=["c"], look_back=4, horizon=2, train=0.6, test=0.2)
    made = task(data)
    values = made.series.table.values  # 18 rows of training, 6 of validation, 6 of test
    mean, deviation = values[:18].mean(axis=0), values[:18].std(axis=0)
    assert [len(made.examples(split)) for split in ("train", "val", "test")] == [13, 5, 5]
    for split, first in (("train", 4), ("val", 18), ("test", 24)):
        examples = made.examples(split)
        batch = examples[[0, len(examples) - 1]]
        last = {"train": 18, "val": 24, "test": 30}[split] - 2
        for row, start in enumerate((first, last)):
            known = calendar_features(made.series.table.times or ())
            source = np.hstack([(values - mean) / deviation, known])[start - 4 : start]
            np.testing.assert_allclose(batch.source[row], source, rtol=1e-5)
            a = ((values - mean) / deviation)[:, 0]
            np.testing.assert_allclose(batch.target[row, :, 0], a[start - 1 : start + 2], rtol=1e-5)
            np.testing.assert_allclose(batch.target[row, :2, 1:], known[start : start + 2], rtol=1e-5)  # of the *next* time
            np.testing.assert_allclose(batch.labels[row, :, 0], a[start : start + 2], rtol=1e-5)
        assert batch.real.all()
        assert batch.real.shape == (2, 2)


def test_lags_are_what_makes_a_value() -> None:
    """Without noise a value is a function of the rows that the gold links name: a regression on them leaves nothing."""
    data = Lags(noise=0.0, train_size=300, val_size=5, test_size=7)
    made = task(data)
    assert [len(made.examples(split)) for split in ("train", "val", "test")] == [300, 5, 7]
    values = made.series.table.values
    rows = np.arange(20, len(values))
    for series in range(2):
        past = np.stack([values[rows - lag, series] for lag in data.lags], axis=1)
        now = np.arctanh(values[rows, series].clip(-1 + 1e-12, 1 - 1e-12))
        weights, residual, *_ = np.linalg.lstsq(past, now, rcond=None)
        assert residual.item() < 1e-6
        assert (np.abs(weights) >= 0.49).all()
    links = made.examples("test").gold_links()
    assert links is not None
    dense = links.batch([0], data.horizon, data.look_back)[0].numpy()
    for t in range(data.horizon):
        assert set(np.flatnonzero(dense[t])) == {data.look_back + t - lag for lag in data.lags}


def test_a_lag_that_lies_in_the_forecast_itself_has_no_link() -> None:
    assert lag_links([1, 3], look_back=3, horizon=3) == [(2, 0), (0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize(
    ("content", "options", "told"),
    [
        ("time,a\n2020-01-01,1\n2020-01-02,\n", {}, "line 3, column 'a': no value: fill the hole"),
        ("time,a\n2020-01-01,1\n2020-01-02,NaN\n", {}, "line 3, column 'a': no value: fill the hole"),
        ("time,a\n2020-01-01,much\n", {}, "line 2, column 'a': 'much' is no finite number"),
        (
            "time,a\n2020-01-01,1\n",
            {"time": None},
            "line 2, column 'time': '2020-01-01' is no finite number: say that it is the",
        ),
        ("time,a\n2020-01-01,inf\n", {}, "line 2, column 'a': 'inf' is no finite number"),
        ("time,a\n2020-01-01,1,2\n", {}, "line 2: 3 values, but there are 2 columns"),
        ("time,a\n2020-01-01,1\n", {"targets": ["b"]}, "no column 'b': there is a, time"),
        (
            "time,a\n2020-01-01,1\n",
            {"targets": ["a"], "covariates": ["a"]},
            "the column 'a' is there twice, or asked for twice",
        ),
        ("time,a,a\n2020-01-01,1,2\n", {}, "the column 'a' is there twice"),
        ("1,2\n3,4\n", {"time": None}, "line 1: numbers, and no names of columns"),
        ("2,2020-01-01\n3,2020-01-02\n", {}, r"line 1: a time and numbers, .* quotation marks, '\"1\"'"),
        ("time;a\n2020-01-01;1\n", {}, "values are separated by ';': write commas between them"),
        ("time,a\n", {}, "holds no row"),
        ("time\n2020-01-01\n", {}, "no column is to be forecast"),
        ("time,a\n2020-01-01,1\n", {"targets": []}, "no column is to be forecast: name one in targets"),
        ("time,a\n2020-01-01,-1e300\n", {}, "line 2, column 'a': '-1e300' is too large: take a larger unit"),
        ("time,a\nyesterday,1\n", {}, "line 2: 'yesterday' is no time such as 2016-07-01"),
        ("time,a\n2020-01-01 02:00+02:00,1\n2020-01-01 02:30+03:00,1\n", {}, "line 3: .* is not after the time of the line"),
        ("time,a\n2020-01-01 02:00+02:00,1\n2020-01-01 03:00,1\n", {}, "line 3: this time or the one before has no offset"),
        ("a\n1\n\n3\n", {"time": None}, "line 3, column 'a': no value: fill the hole"),
        ("time,a\n2020-01-02,1\n2020-01-01,1\n", {}, "line 3: 2020-01-01 is not after the time of the line before"),
        ("time,a\r2020-01-01,1\r2020-01-02,2\r", {}, "its lines end in carriage returns alone"),
        ('time,a\n2020-01-01,1\n2020-01-02,"' + 140_000 * "2" + "\n", {}, "line 3: no values with commas between them"),
        ("time,a\n2020-01-01,1\n2020-01-01,2\n", {}, "line 3: 2020-01-01 is the time of the line before too: leave one out"),
        (",a\n0,1\n", {"time": None}, "column 1 has no name: name it, or leave it out"),
        ("", {}, "is empty"),
        ("tüme,a\n", {"encoding": "latin-1"}, "line 1: not UTF-8"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_line(
    content: str, options: dict[str, object], told: str, tmp_path: Path
) -> None:
    path = tmp_path / "series.csv"
    path.write_bytes(content.encode(str(options.pop("encoding", "utf-8"))))
    with pytest.raises(UserError, match=told) as refusal:
        SeriesFile(path=str(path), **{"time": "time", **options}).load()  # type: ignore[arg-type]
    assert "\n" not in str(refusal.value)


def test_clocks_are_put_back_and_files_end_with_empty_lines() -> None:
    lines = "time,a\n2020-10-25 02:00+02:00,1\n\n2020-10-25 02:00+01:00,2\n\n\n"
    table = read_table(lines.encode(), Path("series.csv"), time="time")
    assert table.values.ravel().tolist() == [1.0, 2.0]
    assert table.times == (datetime(2020, 10, 25, 2), datetime(2020, 10, 25, 2))
    assert str(table.offset) == "UTC+01:00"
    assert read_table(b"a\n1\n2\n\n\n", Path("series.csv")).values.ravel().tolist() == [1.0, 2.0]


def test_rows_that_lack_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "series.csv"
    path.write_text(GOOD)
    source = SeriesFile(path=str(path), time="time", look_back=2, horizon=1)
    source.load()
    assert not caplog.records
    path.write_text("".join(line for line in GOOD.splitlines(True) if "2020-01-07" not in line))
    source.load()
    (record,) = caplog.records
    assert (
        "1 of 28 steps in time are longer than the commonest, 1 day, 0:00:00, the first of them after 2020-01-06"
        in record.message
    )


def test_a_column_that_does_not_vary_has_a_deviation_of_one() -> None:
    values = np.full((7000, 2), 0.1)
    values[:, 1] = np.arange(7000)
    assert 0 < values.std(axis=0)[0] < 1e-10, "by rounding"
    assert Scale.of(values).deviation.tolist() == [1.0, pytest.approx(values[:, 1].std())]


def test_the_next_time_is_the_commonest_step_away() -> None:
    days = [datetime(2025, 1, day) for day in (1, 2, 3, 6, 7, 8, 9, 10, 13)]
    assert step_between(days) == timedelta(days=1)
    assert step_between(days[-2:]) == timedelta(days=3)
    assert step_between(days[1:4]) == timedelta(days=3), "the last of two that are as common"
    assert step_between(days[:1]) == timedelta()


@pytest.mark.parametrize(
    ("first", "second", "last", "following"),
    [
        ("2019-10-01", "2019-11-01", "2019-12-01", ["2020-01-01", "2020-02-01", "2020-03-01"]),
        ("2019-10-31", "2019-11-30", "2019-12-31", ["2020-01-31", "2020-02-29", "2020-03-31"]),
        ("2019-12-31", "2020-01-31", "2020-02-29", ["2020-03-31", "2020-04-30", "2020-05-31"]),
        ("2018-06-30", "2018-12-30", "2019-06-30", ["2019-12-30", "2020-06-30", "2020-12-30"]),
        ("2019-12-30", "2019-12-31", "2020-01-01", ["2020-01-02", "2020-01-03", "2020-01-04"]),
    ],
    ids=["first days", "last days", "last days of which the last is early", "half years", "days"],
)
def test_times_go_on_by_months_where_they_came_by_months(first: str, second: str, last: str, following: list[str]) -> None:
    times = [datetime.fromisoformat(time) for time in (first, second, last)]
    assert [f"{time:%Y-%m-%d}" for time in next_times(times, 3)] == following


@pytest.mark.parametrize("step", [timedelta(days=1), timedelta(days=30)])
def test_after_the_last_year_there_is_no_time(step: timedelta) -> None:
    times = [datetime(9999, 12, 31) - step * before for before in (2, 1, 0)]
    with pytest.raises(UserError, match="the time 9999-12-31 00:00:00 has no time after it"):
        next_times(times, 1)


def test_months_are_counted_by_the_commonest_step(tmp_path: Path) -> None:
    """The first step alone may be another one."""
    begin = datetime(2020, 1, 1)
    hours = [begin, *(begin + timedelta(hours=hour) for hour in range(2, 20 * 720 + 1))]
    (tmp_path / "hours.csv").write_text("\n".join(["date,load", *(f"{time},{time.hour}" for time in hours)]))
    assert Ett(path=str(tmp_path / "hours.csv")).load().ends == (8640, 11520, 14400)


def test_too_few_rows_are_told_with_the_part_that_lacks_them(tmp_path: Path) -> None:
    path = tmp_path / "series.csv"
    path.write_text(GOOD)
    with pytest.raises(UserError, match="the training part has 21 rows, and a window of it needs 22"):
        task(SeriesFile(path=str(path), time="time", look_back=20, horizon=2)).prepare()
    with pytest.raises(UserError, match="the validation part has 3 rows, and a window of it needs 4"):
        task(SeriesFile(path=str(path), time="time", look_back=2, horizon=4)).prepare()
    with pytest.raises(UserError, match="30 rows, fewer than 20 months of 30: choose the data csv"):
        Ett(path=str(path), time="time").load()
    with pytest.raises(UserError, match=r"no file .*: name the file of the series"):
        SeriesFile(path=str(tmp_path / "other.csv")).load()
    damaged = tmp_path / "series.csv.gz"
    damaged.write_bytes(b"no gzip")
    with pytest.raises(UserError, match="cannot read"):
        SeriesFile(path=str(damaged)).load()
