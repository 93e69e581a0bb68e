import json
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from attnlab.runs.files import write_lines
from attnlab.runs.folder import RunFolder
from attnlab.studies.collection import Study, collect
from attnlab.studies.comparison import compare_variants
from attnlab.studies.lengths import measure_runs_by_length
from attnlab.studies.page import page
from attnlab.studies.page.charts import Spread, costs, curves, lengths
from attnlab.studies.page.contents import Piece, differences, examples, facts, pieces, samples, shared_settings
from attnlab.studies.table import Cell, Comparison, Note
from studies.folders import DIVERGENCE, NASTY, environment, write_run, write_study

CHROMIUM = shutil.which("chromium")
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH (Debian: apt-get install chromium)")
WIDTHS = (360, 1600)


class Reader(HTMLParser):
    """What a browser would make of a page: its text, its tags, and the scripts that are data."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.data, self.tags = "", "", list[tuple[str, dict[str, str | None]]]()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        inside, attributes = self.tags[-1] if self.tags else ("", {})
        if attributes.get("type") == "application/json":
            self.data += data
        elif inside not in ("script", "style"):
            self.text += data


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return collect(write_study(tmp_path_factory.mktemp("runs") / "demo"))


@pytest.fixture(scope="module")
def html(study: Study) -> str:
    return page(study, compare_variants(study))


def test_page_holds_every_part_and_shows_all_that_runs_wrote_literally(html: str) -> None:
    reader = Reader(html)
    ids = [attributes["id"] for tag, attributes in reader.tags if tag == "section"]
    assert ids == ["comparison", "curves", "lengths", "costs", "attention", "samples", "unfinished", "reproduce"]
    assert "What does <attention> buy, on short examples & on long ones?" in reader.text
    assert "3 variants, 9 runs: 7 done, 1 failed, 1 missing" in reader.text
    assert DIVERGENCE.strip() in reader.text
    assert all(" ".join(side) in reader.text for side in (NASTY, NASTY[::-1]))
    # Plotly, the page's own script and the data: a prediction has opened no fourth.
    assert [tag for tag, _ in reader.tags].count("script") == 3
    assert not {"b", "i"} & {tag for tag, _ in reader.tags}
    assert json.loads(reader.data)["examples"][0]["maps"][0]["target"] == [*NASTY, "</s>"]


def test_page_asks_for_nothing_outside_itself(html: str) -> None:
    outside = [
        attributes[name] for _, attributes in Reader(html).tags for name in ("src", "href", "action") if attributes.get(name)
    ]
    assert all(address.startswith(("#", "data:")) for address in outside if address)
    style = html[html.index("<style>") : html.index("</style>")]
    assert not re.search(r"url\(|@import", style)


def test_reference_and_prediction_are_told_apart_by_word() -> None:
    assert pieces("a b c d", "a x c d e") == [
        Piece("a", ""),
        Piece("b", "del"),
        Piece("x", "ins"),
        Piece("c d", ""),
        Piece("e", "ins"),
    ]
    assert pieces("a", "") == [Piece("a", "del")]


def test_variants_that_wrote_the_same_stand_together(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "same", skills={"attention=dot": 1.0, "attention=additive": 1.0}, seeds=(1,), states={})
    (first, *_) = samples(collect(folder), "test", ["dot", "additive"])
    assert [prediction.variants for prediction in first.predictions] == [["dot", "additive"]]
    assert first.predictions[0].pieces == [Piece(first.reference, "")]


def test_what_stands_together_is_of_one_example_wherever_a_run_has_it(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "other", skills={"attention=dot": 1.0, "attention=additive": 1.0}, seeds=(1,), states={})
    dot, additive = (RunFolder(folder / f"attention={name}" / "seed=1") for name in ("dot", "additive"))
    maps = additive.read_attention()
    other = {**maps[1], "lines": ["another source", "another target"]}
    additive.write_attention([maps[2], {**other, "source": ["another", "</s>"]}, {**maps[0], "source": ["<", "/", "s"]}])
    variants = ["dot", "additive"]
    shown = examples(collect(folder), variants)
    first, second, third = dot.read_attention()
    assert [(one.name, [found.variant for found in one.maps]) for one in shown] == [
        (f"test 1: {first['lines'][0]}", ["dot", "additive"]),
        (f"test 3: {third['lines'][0]}", ["dot", "additive"]),
        (f"test 2: {second['lines'][0]}", ["dot"]),
        ("test 2: another source", ["additive"]),
    ]
    assert shown[0].maps[1].source == ["<", "/", "s"], "the tokens are each run's own"

    for read, file in ((additive.read_sources, additive.sources_file), (additive.read_references, additive.references_file)):
        write_lines(file("test"), ["new", *read("test")[1:]])
    told = [
        (one.number, one.source, [p.variants for p in one.predictions]) for one in samples(collect(folder), "test", variants)
    ]
    assert told[:3] == [
        (1, dot.read_sources("test")[0], [["dot"]]),
        (1, "new", [["additive"]]),
        (2, dot.read_sources("test")[1], [["dot", "additive"]]),
    ]


def test_curves_are_means_of_finished_runs_with_what_lies_between(study: Study) -> None:
    chart = curves(study)[0]
    assert (chart.name, [series.variant for series in chart.series]) == ("val/bleu", ["none", "dot", "additive"])
    dot = chart.series[1]
    values = [run.curve[-1]["val/bleu"] for run in study.variants["dot"] if run.is_done]
    assert dot.y[-1].mean == pytest.approx(sum(values) / 2)
    assert (dot.y[-1].low, dot.y[-1].high, dot.y[-1].runs) == (min(values), max(values), 2)
    perplexity = next(chart for chart in curves(study) if chart.name == "val/perplexity")
    assert perplexity.series[0].x[0] == 2, "an epoch whose value is no number is left out"


def test_quality_by_length_is_of_every_metric_the_one_that_ranks_first(study: Study) -> None:
    charts = lengths(study)
    names = [chart.name for chart in charts]
    assert names[:4] == ["test BLEU", "test_long BLEU", "test chrF", "test_long chrF"]
    assert {"test AER", "test entropy", "test_long token accuracy"} <= set(names)
    chart = charts[names.index("test_long AER")]
    assert (chart.x, chart.y) == ("source words", "AER (%)")
    assert [series.variant for series in chart.series] == ["dot", "additive"], "no attention, no alignment"
    assert all(set(series.x) <= set(chart.ticks) for series in chart.series)
    assert [int(tick.partition("\N{EN DASH}")[0]) for tick in chart.ticks] == [6, 21, 31, 41], (
        "the nasty example has nine words"
    )
    metric = study.known_metrics["aer"]
    buckets = [found[-1] for found in measure_runs_by_length(study.finished_variants["dot"], "test_long", "aer", metric)]
    assert chart.series[0].y[-1].mean == pytest.approx(sum(bucket.value for bucket in buckets) / 2)


def test_costs_are_set_against_the_metric_that_ranks(study: Study) -> None:
    charts = costs(study)
    assert [chart.x for chart in charts][1] == "parameters"
    assert {chart.y for chart in charts} == {"test BLEU"}
    none = charts[1].series[0]
    runs = study.finished_variants["none"]
    assert none.y[0].mean == pytest.approx(sum(run.result.metric("test", "bleu") or 0.0 for run in runs) / 3)
    assert none.x[0] == Spread(*[float(runs[0].result.parameters)] * 3, 3)


def test_page_says_nothing_of_one_task_alone(html: str) -> None:
    text, _, after = Reader(html).text.partition("What all variants share")  # the config, which names the task
    text += after.partition("Environment")[2]
    assert "Predictions" in text
    assert not re.search(r"sentence|translation", text, re.IGNORECASE)


def test_page_names_what_differs(tmp_path: Path) -> None:
    folder = write_study(tmp_path / "mixed", seeds=(1, 2), states={})
    study = collect(folder)
    assert differences(study) == (
        ["none", "dot", "additive"],
        {"attention.score": ["none", "dot", "additive"], "attention.hidden_size": [None, None, "128"]},
    )
    assert not {"seed", "data.seed"} & {*shared_settings(study)}
    assert "Not all runs are alike" not in page(study, None)
    study.runs[0].folder.add_start(environment(gpus=["Example GPU"], dirty=True))
    study = collect(folder)
    assert {fact.name for fact in facts(study) if len(fact.values) > 1} == {"commit", "GPUs"}
    text = Reader(page(study, None)).text
    assert "they differ in commit, GPUs" in text
    assert "Example GPU 1 run" in text
    assert "with uncommitted changes" in text


def test_study_without_a_finished_run_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "young"
    write_run(folder / "attention=dot" / "seed=1", ["attention=dot"], 1, state="interrupted")
    write_run(folder / "attention=none" / "seed=1", ["attention=none"], 1, state="running")
    with RunFolder(folder / "attention=none" / "seed=1").lock():
        reader = Reader(page(collect(folder), None))
    assert "No run is finished and tested yet" in reader.text
    assert "1 running, 1 interrupted" in reader.text
    ids = [attributes["id"] for tag, attributes in reader.tags if tag == "section"]
    assert ids == ["comparison", "curves", "unfinished", "reproduce"], "learning curves are shown as far as they are"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with more variants than colours, and with numbers that sort otherwise than their text."""
    names = ["none", "dot", "scaled_dot", "general", "additive", "concat", "cosine", "local_m", "local_p"]
    skills = {f"attention={name}": 0.5 + 0.05 * place for place, name in enumerate(names)} | {"attention=<b>odd</b>": 0.9}
    study = collect(write_study(tmp_path_factory.mktemp("runs") / "many", skills=skills, seeds=(1, 2)))
    values = [None, 9.5, 10.25, -1.0, 100.0, 33.0, -3.0, 5.0, 6.0, 7.0]
    rows = [
        [Cell(label, label), Cell("-" if value is None else f"{value} ± 1.0", value, value == 100.0)]
        for label, value in zip(study.variants, values, strict=True)
    ]
    path = tmp_path_factory.mktemp("page") / "index.html"
    path.write_text(
        page(study, Comparison("many", ["attention", "test BLEU"], rows, [Note("a note")], [], [0, 1])), encoding="utf-8"
    )
    return path.as_uri()


@pytest.fixture
def opened(browser: Browser, address: str) -> Iterator[Page]:
    """The page, which may neither complain nor ask for anything else."""
    context = browser.new_context(viewport={"width": 1000, "height": 800})
    tab = context.new_page()
    asked, complaints = list[str](), list[str]()
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
    tab.goto(address)
    tab.wait_for_selector("[data-chart=costs] .plot svg .trace")
    yield tab
    assert [url for url in asked if not url.startswith("data:")] == [address]
    assert complaints == []
    context.close()


def paths(tab: Page, chart: str) -> int:
    return tab.locator(f"[data-chart={chart}] .plot svg .trace path").count()


@in_a_browser
def test_header_sorts_by_number_and_holes_stay_last(opened: Page) -> None:
    def column() -> list[str]:
        return [text.split()[0] for text in opened.locator("#comparison tbody td").all_inner_texts()]

    button = opened.get_by_role("button", name="test BLEU")
    button.click()
    falling = ["100.0", "33.0", "10.25", "9.5", "7.0", "6.0", "5.0", "-1.0", "-3.0"]
    assert column() == [*falling, "-"]
    assert opened.locator("#comparison th[aria-sort=descending]").inner_text() == "test BLEU"
    button.press("Enter")
    assert column() == [*reversed(falling), "-"]
    opened.get_by_role("button", name="attention", exact=True).click()
    labels = opened.locator("#comparison tbody th").all_inner_texts()
    assert labels == sorted(labels)
    assert opened.locator("#comparison th[aria-sort=none]").count() == 1
    assert opened.locator("#comparison strong").all_inner_texts() == ["100.0"]


@pytest.mark.exhaustive
@in_a_browser
def test_the_table_fits_1200_pixels_until_all_columns_are_asked_for(browser: Browser, tmp_path: Path) -> None:
    study = collect(
        write_study(tmp_path / "runs" / "wide", skills={"attention=none": 0.5, "attention=dot": 0.9}, seeds=(1, 2, 3))
    )
    comparison = compare_variants(study)
    path = tmp_path / "index.html"
    path.write_text(page(study, comparison), encoding="utf-8")
    tab = browser.new_page(viewport={"width": 1200, "height": 800})
    tab.goto(path.as_uri())
    table, columns = tab.locator("#comparison .scroll").first, tab.locator("#comparison .figures thead th:visible")
    assert columns.count() == len(comparison.brief) < len(comparison.header)
    assert table.evaluate("e => e.scrollWidth <= e.clientWidth")
    tab.get_by_label("columns").check()
    assert columns.count() == len(comparison.header)
    tab.close()


@in_a_browser
def test_charts_are_drawn_and_their_selectors_change_them(opened: Page) -> None:
    for chart in ("curves", "lengths", "costs"):
        drawing = opened.locator(f"[data-chart={chart}] .plot svg").first
        assert paths(opened, chart) >= 10, "a line or a marker for each variant"
        before = drawing.inner_html()
        opened.select_option(f"#choose-{chart}", index=1)
        assert drawing.inner_html() != before
        assert paths(opened, chart) >= 10
    assert opened.locator("[data-chart=costs] .plot .xtitle").text_content() == "parameters"
    assert opened.locator("[data-chart=curves] .key button").all_inner_texts()[-1] == "<b>odd</b>"


@in_a_browser
def test_charts_are_also_tables_of_their_values(opened: Page) -> None:
    charts = json.loads(opened.locator("#data").text_content() or "")["charts"]
    for name, chart in ((name, charts[name][0]) for name in ("curves", "lengths", "costs")):
        figure = opened.locator(f"[data-chart={name}]")
        figure.locator(".values summary").click()
        figure.locator(".values tr").first.wait_for()  # a browser tells of what is opened a while after it
        head, *rows = [row.locator("th, td").all_inner_texts() for row in figure.locator(".values tr").all()]
        variants = [series["variant"] for series in chart["series"]]
        assert (head[:1] + variants if name != "costs" else ["variant", chart["x"], chart["y"]]) == head
        assert [row[0] for row in rows] == (variants if name == "costs" else [str(x) for x in chart["series"][0]["x"]])
        for place, series in enumerate(chart["series"]):
            shown = [rows[place][-1]] if name == "costs" else [row[place + 1] for row in rows]
            means = [spread["mean"] for spread in series["y"]]
            assert [float(text.split()[0].replace(",", "")) for text in shown] == pytest.approx(means, rel=1e-3, abs=0.005)
            several = [spread["runs"] > 1 for spread in series["y"]]
            assert [text.endswith(", 2 seeds") for text in shown] == several
    figure.locator(".key button", has_text="general").click()
    assert figure.locator(".values tr").count() == len(rows), "one is hidden, and the head is a row"


@pytest.mark.exhaustive
@in_a_browser
def test_variant_can_be_hidden_from_all_charts(opened: Page) -> None:
    before = [paths(opened, chart) for chart in ("curves", "costs")]
    maps = opened.locator(".map").count()
    opened.locator("[data-chart=curves] .key button", has_text="general").click()
    assert all(paths(opened, chart) < count for chart, count in zip(("curves", "costs"), before, strict=True))
    assert opened.locator(".map").count() == maps - 1
    assert opened.locator("[data-chart=costs] .key [aria-pressed=false]").all_inner_texts() == ["general"]


@pytest.mark.exhaustive
@in_a_browser
def test_heatmaps_show_the_chosen_example_with_its_labels_uncut(opened: Page) -> None:
    assert opened.locator(".map").count() == 9, "all but the variant without attention"
    for place, length in enumerate((10, 17, 45)):
        opened.select_option("#choose-example", index=place)
        first = opened.locator(".map svg").first
        assert first.locator("text").count() == 2 * length
        assert first.locator("circle.gold").count() == length - 1
        cut = first.evaluate(
            "svg => { const box = svg.getBoundingClientRect();"
            " return [...svg.querySelectorAll('text')].filter(text => { const b = text.getBoundingClientRect();"
            " return b.left < box.left || b.top < box.top || b.right > box.right; }).length; }"
        )
        assert cut == 0
    opened.locator(".map svg").first.hover()
    assert re.fullmatch(r"\S+ ← \S+: [01]\.\d{3}", opened.locator(".map output").first.inner_text())
    frame, told = opened.locator(".map .frame").first, []
    frame.focus()
    for arrow in ("Up", "Right", "Down", "Left", "Left"):
        frame.press(f"Arrow{arrow}")
        told.append(opened.locator(".map output").first.inner_text().partition(":")[0].split(" ← "))
    first, right, below, left, edge = told
    assert (right[0], below[1]) == (first[0], right[1])
    assert left == edge == [below[0], first[1]]


@pytest.mark.exhaustive
@in_a_browser
def test_samples_of_one_test_set_are_shown_literally(opened: Page) -> None:
    assert opened.locator("ol.samples:visible").count() == 1
    assert opened.locator("ol.samples:visible .reference").first.inner_text() == " ".join(NASTY)
    first = opened.locator("ol.samples:visible").inner_text()
    opened.select_option("#choose-sample", label="test_long")
    assert opened.locator("ol.samples:visible").count() == 1
    assert opened.locator("ol.samples:visible").inner_text() != first
    for name, line in (("ins", "underline"), ("del", "line-through")):
        style = opened.locator(f"ol.samples:visible {name}").first.evaluate("e => getComputedStyle(e).textDecorationLine")
        assert style == line, "not by colour alone"


@pytest.mark.few(1)
@in_a_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_phones_and_wide_screens_and_follows_the_scheme(opened: Page, scheme: str) -> None:
    opened.emulate_media(color_scheme="dark" if scheme == "light" else "light")
    opened.emulate_media(color_scheme="light" if scheme == "light" else "dark")
    ink = opened.evaluate("getComputedStyle(document.body).color")
    drawn = "ink => getComputedStyle(document.querySelector('[data-chart=curves] .plot .xtitle')).fill === ink"
    opened.wait_for_function(drawn, arg=ink)
    for width in WIDTHS:
        opened.set_viewport_size({"width": width, "height": 800})
        opened.select_option("#choose-example", index=2)
        opened.wait_for_function("[...document.querySelectorAll('.plot svg')].every(e => e.clientWidth <= innerWidth)")
        assert opened.evaluate("document.documentElement.scrollWidth") <= width
