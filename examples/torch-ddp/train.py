"""Fits a line with DistributedDataParallel: every rank has its part of the data, all end with one model."""
import datetime
import os

import torch
import torch.distributed as dist

STEPS = 60
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))  # env://: MASTER_ADDR, RANK, WORLD_SIZE
rank, size = dist.get_rank(), dist.get_world_size()
print(f"rank {rank} of {size}, local rank {os.environ['LOCAL_RANK']} on node {os.environ['GROUP_RANK']}")

torch.manual_seed(rank)
x = torch.rand(64, 1)
y = 3 * x - 1
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for step in range(1, STEPS + 1):
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    dist.all_reduce(loss.detach_())
    if rank == 0 and step % 10 == 0:
        print(f"step={step}/{STEPS} loss={loss.item() / size:.6f}", flush=True)
weight, bias = (p.item() for p in model.parameters())
print(f"rank {rank}: weight={weight:.3f} bias={bias:.3f}")
dist.destroy_process_group()
