"""What folders and files of runs are called, for commands that answer before anything heavy is imported."""

RUNS = "runs"
"""Folder of all studies, as ``conf/train.yaml`` has it."""
SHAPE = f"{RUNS}/NAME/VARIANT/seed=N"
NAME_A_RUN = f"name a run: the folder that attnlab train wrote, {SHAPE}"
"""What a command says that needs one."""
RECORD = "run.json"
BEST = "best.ckpt"
LAST = "last.ckpt"
WEIGHTS = "weights.safetensors"
PRECISIONS = ("float32", "bfloat16")
"""What a trained model may be used in, as torch names them."""
BOOTSTRAP_SAMPLES = 1000
"""For confidence intervals, unless the user says another number."""

DIVERGED = FloatingPointError.__name__
"""What ends a training whose loss is no number any more: what it came to, and no accident, since it would diverge again."""
