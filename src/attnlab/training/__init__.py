"""Training: the LightningModule, what it is trained for, its callbacks and its loggers."""

from attnlab.training.module import SequenceModule
from attnlab.training.objective import Objective, TeacherForcing

__all__ = ["Objective", "SequenceModule", "TeacherForcing"]
