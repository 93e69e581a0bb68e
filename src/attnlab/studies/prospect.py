"""What a study would do if it were started now."""

from omegaconf import DictConfig, OmegaConf

from attnlab.studies.collection import state
from attnlab.studies.identity import identity
from attnlab.studies.plan import Composer, Plan
from attnlab.studies.resuming import found
from attnlab.studies.wiring import build


def prospect(plan: Plan) -> list[str]:
    """Tell of each planned run whether it is done, or what would be done, having composed its config and looked at its data.

    Raises:
        HydraException: a config that does not compose.
        UserError: data that cannot be read.
    """
    told: list[str] = []
    fingerprints: dict[str, str] = {}
    composer = Composer(plan.places)
    for run in plan.runs:
        config, _ = composer.compose(plan.config_name, run.overrides)
        parts = OmegaConf.to_yaml(OmegaConf.masked_copy(config, ["data", "tokenizer", "datamodule"]), resolve=True)
        if parts not in fingerprints:
            fingerprints[parts] = fingerprint(config)
        folder = plan.folder / run.folder
        there = found(folder)
        now = state(folder)
        if there is not None and there.id != identity(config, fingerprints[parts]):
            told.append(f"to do: the run there ({now}) is another one, by its config, data or version, and will be set aside")
        else:
            told.append({"done": "done", "running": "running"}.get(now, f"to do ({now})"))
    return told


def fingerprint(config: DictConfig) -> str:
    """Return the fingerprint of a config's data, without tokenizing it.

    Raises:
        UserError: data that cannot be read.
    """
    corpus, tokenizer = build(config.data), build(config.tokenizer)
    found: str = build(config.datamodule)(corpus=corpus, tokenizer=tokenizer, seed=config.seed).fingerprint
    return found
