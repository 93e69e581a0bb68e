"""Questions: stories in, the answer to a question about them out (Weston et al. 2015)."""

from attnlab.tasks.questions.babi import Babi
from attnlab.tasks.questions.generator import GeneratedStories
from attnlab.tasks.questions.stories import Question, Stories
from attnlab.tasks.questions.task import Questions

__all__ = ["Babi", "GeneratedStories", "Question", "Questions", "Stories"]
