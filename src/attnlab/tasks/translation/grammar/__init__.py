"""A synchronous grammar of English and German, which generates sentence pairs with gold word alignments.

Each sentence is drawn once, as a tree of clauses and phrases, and said in both languages. The translation is a function of
the source, in either direction, but a function of all of it: words move across clauses, and articles, endings, pronouns and
some verbs depend on words far away. What it says:

- Verb second in German main clauses, whatever stands first, a phrase of time or place or a whole clause:
  "Today the man falls asleep." "Heute schläft der Mann ein."
- Verb last in subordinate clauses (because, although, if, when, while, before, that, whether), where "when" is "wenn" in the
  present and "als" in the past: "When Anna called, the dog slept." "Als Anna anrief, schlief der Hund."
- Perfect, future and modals, with participle or infinitive at the end: "The man has seen the cat in the garden." "Der Mann
  hat die Katze im Garten gesehen." The past is always the preterite; "must not" is "darf nicht".
- Separable verbs, split in a main clause (er ruft ... an), whole elsewhere (dass er anruft, angerufen, anzurufen).
- Infinitives with zu: "Anna tries to call the man." "Anna versucht, den Mann anzurufen."
- Relative clauses in the nominative, accusative and dative, the pronoun by gender and number, between commas:
  "The man sees the woman whom the boy helped." "Der Mann sieht die Frau, der der Junge half."
- Agreement in gender, number and case (strong, weak and mixed adjectives, weak nouns, genitives), verbs with the dative,
  prepositions with either case, drawn together with articles: "The bird of the old man follows a young bear."
  "Der Vogel des alten Mannes folgt einem jungen Bären."
- Compounds, two words in English and one in German: kitchen table, Küchentisch.
- Negation, with do in English; "not a" is "kein": "Emil does not buy a hat." "Emil kauft keinen Hut."
- Pronouns and possessives, in German by the grammatical gender of what they stand for: "The mouse sleeps because it is tired."
  "Die Maus schläft, weil sie müde ist."
- Verbs that depend on subject or object: a man eats (isst), a dog eats (frisst); one knows people (kennt) or facts (weiß).
- Questions: "Who sleeps?", "Why does the man sleep?", "Will the man sleep?"
- Names and numbers to be copied, and, with ``open_names``, names that no vocabulary holds.
- Coordination of phrases and of main clauses.

Alignments count words and punctuation marks, as spaCy's and Moses' tokenizers both find them. Every word is linked to all
that express the same: "calls" to "ruft" and "an"; "kitchen" and "table" to "Küchentisch"; "not" and "a" to "keinen"; "goes
to the" to "geht zur". A comma is linked to its counterpart. Only the auxiliary "do" and commas of one language alone have
no link.
"""

from attnlab.tasks.translation.grammar.corpus import GrammarCorpus

__all__ = ["GrammarCorpus"]
