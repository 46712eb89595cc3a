"""Fits a line with Paddle's DataParallel on CPUs (gloo), by the names that paddle.distributed.launch sets."""
import paddle
import paddle.distributed as dist

dist.init_parallel_env()
rank, size = dist.get_rank(), dist.get_world_size()
paddle.seed(rank)
x = paddle.rand([64, 1])
y = 3 * x - 1
model = paddle.DataParallel(paddle.nn.Linear(1, 1))
optimizer = paddle.optimizer.SGD(0.5, parameters=model.parameters())
for step in range(200):
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
weight, bias = (float(p) for p in model.parameters())
print(f"rank {rank} of {size}: loss={float(loss):.6f} weight={weight:.3f} bias={bias:.3f}", flush=True)
