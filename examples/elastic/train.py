"""Trains with as many nodes as there are.  A change of nodes starts all processes anew: they go on from the last step.

Every process writes its checkpoint beside this file; whoever has the newest gives it to the others, so nodes need no
common file system.
"""
import datetime
import os
import time

import torch
import torch.distributed as dist

STEPS, PAUSE = int(os.environ.get("STEPS", "100")), 0.1
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=30))
rank, size = dist.get_rank(), dist.get_world_size()
checkpoint = f"checkpoint-{os.environ['REGATTA_NODE']}-{os.environ['LOCAL_RANK']}.pt"

model = torch.nn.Linear(1, 1)
state = {"step": 0, "model": model.state_dict()}
if os.path.exists(checkpoint):
    state = torch.load(checkpoint)
states = [None] * size
dist.all_gather_object(states, state)
state = max(states, key=lambda s: s["step"])
step = state["step"]
model.load_state_dict(state["model"])
if rank == 0:
    print(f"begin at step={step} with {size} ranks", flush=True)

torch.manual_seed(rank)
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
done = torch.zeros(1)
while step < STEPS and not done.item():
    x = torch.rand(64, 1)
    optimizer.zero_grad()
    loss = ((model(x) - (3 * x - 1)) ** 2).mean()
    loss.backward()
    optimizer.step()
    step += 1
    torch.save({"step": step, "model": model.module.state_dict()}, checkpoint + ".new")
    os.replace(checkpoint + ".new", checkpoint)
    if rank == 0:
        print(f"step={step}/{STEPS} ranks={size} loss={loss.item():.5f}", flush=True)
    done.fill_(os.path.exists("stop"))  # touch stop: all end after the same step
    dist.all_reduce(done)
    time.sleep(PAUSE)
print(f"rank {rank} of {size} ends at step={step}", flush=True)
dist.destroy_process_group()
