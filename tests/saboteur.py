"""A callback that lets runs fail, as the environment asks: ``SABOTAGE="none=kill@5 dot=nan@3"``, by variant and step."""

import os
import signal

import torch
from lightning import Callback, LightningModule, Trainer

SABOTEUR = "+callbacks.saboteur._target_=saboteur.Saboteur"


class Saboteur(Callback):
    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: object) -> None:
        for order in os.environ.get("SABOTAGE", "").split():
            variant, _, deed = order.rpartition("=")
            act, _, step = deed.partition("@")
            if f"{variant}," in f"{trainer.default_root_dir.replace('/', ',')}," and trainer.global_step == int(step):
                getattr(self, act)(pl_module)

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
