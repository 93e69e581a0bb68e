"""A study as one page of HTML that needs neither a server nor a network."""

from dataclasses import asdict
from datetime import UTC, datetime
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

from attnlab.studies.collection import Study, tally
from attnlab.studies.page import charts, contents
from attnlab.studies.table import Comparison


def page(study: Study, comparison: Comparison | None) -> str:
    """Write a study down as a page: its table, its charts, what its attentions look at, and how to repeat it.

    Args:
        study: to be shown, finished or not.
        comparison: of its variants, or None while no run is finished.

    Returns:
        HTML with everything that it needs inside.
    """
    curves, lengths, costs = charts.curves(study), charts.lengths(study), charts.costs(study)
    examples = contents.examples(study)
    facts = contents.facts(study)
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
        curves=curves,
        lengths=lengths,
        costs=costs,
        examples=examples,
        samples={test: found for test in study.tests if (found := contents.samples(study, test))},
        unfinished=contents.unfinished(study),
        recipes=contents.recipes(study),
        differences=contents.differences(study),
        facts=facts,
        mixed=[fact.name for fact in facts if len(fact.values) > 1],
        data={
            "variants": [*study.variants],
            "charts": {
                name: [asdict(chart) for chart in drawn]
                for name, drawn in {"curves": curves, "lengths": lengths, "costs": costs}.items()
            },
            "examples": [asdict(example) for example in examples],
        },
        style=_own("page.css"),
        script=_own("page.js"),
        plotly=Markup(get_plotlyjs()),
    )


def _own(name: str) -> Markup:
    return Markup((files(__name__) / name).read_text(encoding="utf-8"))
