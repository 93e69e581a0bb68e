"""A study as one page of HTML that needs neither a server nor a network."""

import gzip
from base64 import b64encode
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

from attnlab.studies.collection import Study, tally
from attnlab.studies.comparability import has_data_by_seed
from attnlab.studies.matrix import split_columns
from attnlab.studies.notes import differs_in_code
from attnlab.studies.page import charts, contents
from attnlab.studies.table import Comparison
from attnlab.studies.tuning.selection import Selection
from attnlab.studies.tuning.summary import tabulate


def page(study: Study, comparison: Comparison | None, selection: Selection | None = None) -> str:
    """Write a study down as a page: its table, its charts, what its attentions look at, and how to repeat it.

    Args:
        study: to be shown, finished or not.
        comparison: of its variants, or None while no run is finished.
        selection: what its tuning found; None where nothing was tuned.

    Returns:
        HTML with everything that it needs inside.
    """
    is_one_task = not study.plan.columns  # of several all that is no table stands in the reports of the columns
    drawings = (charts.curves, charts.lengths, charts.costs)
    curves, lengths, costs = (draw(study) if is_one_task else [] for draw in drawings)
    budgets, trials = (draw(selection) if selection else [] for draw in (charts.budgets, charts.trials))
    shown = contents.select_variants(study, comparison)
    examples = contents.examples(study, shown) if is_one_task else []
    facts = contents.facts(study) if is_one_task else []
    environment = Environment(
        loader=PackageLoader("attnlab.studies", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    return environment.get_template("page.html").render(
        study=study,
        state=tally(run.state for run in study.runs),
        made=datetime.now(UTC),
        comparison=comparison,
        shown=shown,
        points=charts.POINTS,
        curves=curves,
        lengths=lengths,
        costs=costs,
        tuning=comparison.tuning if comparison else tabulate(study, selection) if selection else None,
        budgets=budgets,
        trials=trials,
        examples=examples,
        samples={
            test: found for test in (study.tests if is_one_task else ()) if (found := contents.samples(study, test, shown))
        },
        unfinished=contents.unfinished(study),
        recipes=contents.recipes(study),
        differences=contents.differences(study) if is_one_task else ([], {}),
        settings=contents.shared_settings(study) if is_one_task else {},
        columns={name: study.folder.column_page_file(name).name for name in split_columns(study)},
        facts=facts,
        mixed=[fact.name for fact in facts if len(fact.values) > 1 and not _differs_on_purpose(study, fact.name)],
        data={
            "variants": [*shown, *(label for label in study.variants if label not in shown)],
            "shown": len(shown),
            "charts": _plain({"budgets": budgets, "trials": trials, "curves": curves, "lengths": lengths, "costs": costs}),
            "examples": _plain(examples),
        },
        style=_own("page.css"),
        script=_own("page.js"),
        plotly=_pack(get_plotlyjs()),
    )


def _differs_on_purpose(study: Study, fact: str) -> bool:
    """Tell whether variants differ in something as they are meant to: in data by the seed, or in classes of the user's own."""
    return (fact == "data" and has_data_by_seed(study)) or (fact == "code" and not differs_in_code(study))


def _plain(node: Any) -> Any:
    """Return containers that JSON knows; of numbers nine digits are more than a chart shows, and those of a count."""
    if isinstance(node, float):
        return float(f"{node:.9g}")
    if is_dataclass(node):
        return {field.name: _plain(getattr(node, field.name)) for field in fields(node)}
    if isinstance(node, dict):
        return {key: _plain(item) for key, item in node.items()}
    return [_plain(item) for item in node] if isinstance(node, list) else node


def _pack(text: str) -> str:
    """Return a text by gzip and base64, as which the drawing library takes 2 MB of a page, and not 5."""
    return b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _own(name: str) -> Markup:
    return Markup((files(__name__) / name).read_text(encoding="utf-8"))
