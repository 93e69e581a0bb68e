"""What an argument that is being typed may become, for the shell."""

from pathlib import Path

import click

from attnlab.runs.names import RUNS

ANY_RUN = "*/*/seed=*"


def complete_run(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the folders of runs."""
    folders = sorted(map(str, Path(RUNS).glob(ANY_RUN)))
    return [folder for folder in folders if folder.startswith(incomplete)]


def complete_run_or_variant(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the folders of runs, and those of variants."""
    variants = {str(Path(run).parent) for run in complete_run(ctx, param, "")}
    return sorted(folder for folder in variants if folder.startswith(incomplete)) + complete_run(ctx, param, incomplete)


def complete_run_or_search(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the folders of runs, and overrides of the search; of ``attnlab evaluate`` those of metrics too."""
    from attnlab.config import CONF, complete

    groups = ("search", "metrics") if ctx.info_name == "evaluate" else ("search",)
    more = ctx.params.get("config_dir")
    places = [CONF, *([more] if more else [])]
    chosen = [word for word in ctx.params.get("words") or () if word.startswith(groups)]
    may_be = any(group.startswith(incomplete[: len(group)]) for group in groups)
    found = complete(chosen, incomplete, places=places) if may_be else []
    return complete_run(ctx, param, incomplete) + [override for override in found if override.startswith(groups)]


def complete_override(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return overrides of a run's config."""
    from attnlab.config import CONF, complete

    more = ctx.params.get("config_dir")
    return complete(ctx.params.get("overrides") or (), incomplete, places=[CONF, *([more] if more else [])])


def complete_study(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return names of studies, or overrides of the config of the one that is named."""
    from attnlab.config import CONF, complete
    from attnlab.errors import UserError
    from attnlab.studies.files import find_study, list_studies, study_places

    places = study_places()
    if param.name == "name":
        return [study.name for study in list_studies(places) if study.name.startswith(incomplete)]
    try:
        root, name = find_study(ctx.params["name"], places)
    except UserError:
        return []
    return complete(ctx.params.get("overrides") or (), incomplete, config_name=name, places=[root, *places, CONF])


def complete_study_folder(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return names of folders below runs/."""
    return sorted(path.name for path in Path(RUNS).glob("*") if path.is_dir() and path.name.startswith(incomplete))
