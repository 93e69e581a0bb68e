"""German endings: tables by case, then by gender or plural."""

from attnlab.tasks.translation.grammar.lexicon import Noun, Verb

CASES = ("nom", "acc", "dat", "gen")


def _table(rows: str) -> dict[str, dict[str, str]]:
    """Read a table: a row a case, columns m, n, f, plural; a dash is no ending."""
    return {
        case: {column: "" if ending == "-" else ending for column, ending in zip("mnfp", row.split(), strict=True)}
        for case, row in zip(CASES, rows.split("/"), strict=True)
    }


DEFINITE = _table("der das die die / den das die die / dem dem der den / des des der der")
DER_WORD = _table("er es e e / en es e e / em em er en / es es er er")
EIN_WORD = _table("- - e e / en - e e / em em er en / es es er er")
STRONG = _table("er es e e / en es e e / em em er en / en en er er")
WEAK = _table("e e e en / en e e en / en en en en / en en en en")
MIXED = _table("er es e en / en es e en / en en en en / en en en en")
RELATIVE = _table("der das die die / den das die die / dem dem der denen / dessen dessen deren deren")
PRONOUN = _table("er es sie sie / ihn es sie sie / ihm ihm ihr ihnen / - - - -")

CONTRACTED = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("von", "dem"): "vom",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
}


def noun_form(noun: Noun, case: str, *, plural: bool) -> str:
    """Decline a noun: den Hunden, des Mannes, dem Jungen."""
    if plural:
        form = noun.de_plural
        return f"{form}n" if case == "dat" and form[-1] not in "ns" else form
    if case == "gen" or (noun.weak and case != "nom"):
        return noun.genitive
    return noun.de_singular


def preterite(verb: Verb, *, plural: bool) -> str:
    """Conjugate the past: rief, riefen; lachte, lachten."""
    if not plural:
        return verb.preterite
    return f"{verb.preterite}n" if verb.preterite.endswith("e") else f"{verb.preterite}en"
