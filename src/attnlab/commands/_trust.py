"""``--trust`` of every verb that opens runs."""

import click


def _trust(context: click.Context, parameter: click.Parameter, given: bool) -> None:
    if given:
        from attnlab.config import trust

        context.with_resource(trust(None))


trust_option = click.option(
    "--trust",
    is_flag=True,
    expose_value=False,
    callback=_trust,
    help="Also use classes that are not attnlab's, as runs may name: their code is executed.",
)
