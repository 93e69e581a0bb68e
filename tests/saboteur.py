"""A callback that lets runs fail, as the environment asks, by variant and step, behind a batch if no other time is named:
``SABOTAGE="none=kill@5 dot=nan@3 additive=crash@12@validation"``.
"""

import os
import signal

import torch
from lightning import Callback, LightningModule, Trainer

SABOTEUR = "+callbacks.saboteur._target_=saboteur.Saboteur"


class Saboteur(Callback):
    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, *_: object) -> None:
        self.obey(trainer, pl_module, "start")

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: object) -> None:
        self.obey(trainer, pl_module, "batch")

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.obey(trainer, pl_module, "validation")

    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.obey(trainer, pl_module, "end")

    def on_test_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: object) -> None:
        self.obey(trainer, pl_module, "test")

    def obey(self, trainer: Trainer, module: LightningModule, now: str) -> None:
        for order in os.environ.get("SABOTAGE", "").split():
            variant, _, deed = order.rpartition("=")
            act, step, *when = deed.split("@")
            is_meant = f"{variant}," in f"{trainer.default_root_dir.replace('/', ',')},"
            if is_meant and trainer.global_step == int(step) and (when or ["batch"]) == [now]:
                getattr(self, act)(module)

    def kill(self, module: LightningModule) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def interrupt(self, module: LightningModule) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    def nan(self, module: LightningModule) -> None:
        with torch.no_grad():
            next(module.parameters()).fill_(float("nan"))

    def crash(self, module: LightningModule) -> None:
        raise RuntimeError("out of luck")

    def exhaust(self, module: LightningModule) -> None:
        torch.zeros(2**50)
