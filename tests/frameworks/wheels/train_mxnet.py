"""Fits a line with MXNet's parameter server (dist_sync).  A scheduler or a server serves at the import."""
import mxnet as mx

kv = mx.kv.create("dist_sync")
mx.random.seed(kv.rank)
x = mx.nd.random.uniform(shape=(64, 1))
y = 3 * x - 1
weight, bias = mx.nd.zeros((1,)), mx.nd.zeros((1,))
kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, rescale_grad=1.0 / kv.num_workers))
kv.init("w", weight)
kv.init("b", bias)
for step in range(1, 201):
    error = x * weight + bias - y
    kv.push("w", (2 * error * x).mean().reshape((1,)))
    kv.push("b", (2 * error).mean().reshape((1,)))
    kv.pull("w", out=weight)
    kv.pull("b", out=bias)
print(f"rank {kv.rank} of {kv.num_workers}: loss={(error ** 2).mean().asscalar():.6f} "
      f"weight={weight.asscalar():.3f} bias={bias.asscalar():.3f}", flush=True)
