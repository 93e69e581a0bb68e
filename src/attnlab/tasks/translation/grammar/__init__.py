"""A synchronous grammar of English and German, which generates sentence pairs with gold word alignments.

Each sentence is drawn once, as a tree of clauses and phrases, and said in both languages. The translation is a function of
the source, in either direction, but a function of all of it: words move across clauses, and articles, endings, pronouns and
some verbs depend on words far away. What it says:

- Verb second in German main clauses, whatever stands first, a phrase of time or place or a whole clause:
  "Yesterday the man fell asleep." "Gestern schlief der Mann ein."
- Verb last in subordinate clauses (because, although, if, when, while, before, that, whether), where "when" is "als" of what
  happened once, else "wenn": "When Anna slept, the dog always danced." "Wenn Anna schlief, tanzte der Hund immer."
- Perfect, future and modals, with participle or infinitive at the end: "The man has seen the cat in the garden." "Der Mann
  hat die Katze im Garten gesehen." The past is always the preterite; "must not" is "darf nicht".
- Separable verbs, split in a main clause (er ruft ... an), whole elsewhere (dass er anruft, angerufen, anzurufen).
- Infinitives with zu: "Anna tries to call the man." "Anna versucht, den Mann anzurufen."
- Relative clauses in the nominative, accusative and dative, the pronoun by gender and number, between commas:
  "The man sees the woman whom the boy helped." "Der Mann sieht die Frau, der der Junge half." They move behind the verbs if
  they are long for what they pass: "Der Mann hat die Frau gesehen, der der Junge half."
- Agreement in gender, number and case (strong, weak and mixed adjectives, weak nouns, genitives), verbs with the dative,
  prepositions with either case, drawn together with articles: "The bird of the old man follows a young bear."
  "Der Vogel des alten Mannes folgt einem jungen Bären." Names have a genitive too: "Anna's bird", "Annas Vogel".
- Movement by place: "goes to the park, to the school, travels to Paris", "geht in den Park, zur Schule, reist nach Paris".
- Between the German verbs what is known comes first, then where it happens, what is new, and "nicht": "Anna sells a hat in the
  garden." "Anna verkauft im Garten einen Hut."
- Compounds, two words in English and one in German: kitchen table, Küchentisch.
- Negation, with do in English; "not a" is "kein" at what is not there: "Emil does not give the man a hat." "Emil gibt dem
  Mann keinen Hut."
- Pronouns and possessives, in German by the grammatical gender of what they stand for: "The mouse sleeps because it is tired."
  "Die Maus schläft, weil sie müde ist." Each has one antecedent alone.
- Verbs that depend on subject or object: a man eats (isst), a dog eats (frisst); one knows people (kennt) or facts (weiß).
- Questions: "Who sleeps?", "Why does the man sleep?", "Will the man sleep?"
- Names and numbers to be copied (numbers up to twelve are words), and, with ``open_names``, names that no vocabulary holds.
- Coordination of phrases and of main clauses.

Verbs, nouns and adjectives choose each other by kind: people write letters, not maps, and birds do not repair.

Alignments count words and punctuation marks, as spaCy's and Moses' tokenizers both find them. Every word is linked to all
that express the same: "calls" to "ruft" and "an"; "kitchen" and "table" to "Küchentisch"; "not" and "a" to "keinen"; "goes
to the" to "geht zur"; "Anna" and "'s" to "Annas". A comma is linked to its counterpart. Only the auxiliary "do" and commas
of one language alone have no link.
"""

from attnlab.tasks.translation.grammar.corpus import GrammarCorpus

__all__ = ["GrammarCorpus"]
