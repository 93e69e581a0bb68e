"""Training: the LightningModule, its callbacks and its loggers."""

from attnlab.training.module import TeacherForcing, TranslationModule
from attnlab.training.outputs import Translation

__all__ = ["TeacherForcing", "Translation", "TranslationModule"]
