"""Data-parallel training with JAX; without JAX it prints what JAX would be told."""
import os

address, size, rank = (os.environ[n] for n in ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"))
print(f"process {rank} of {size}, coordinator {address}", flush=True)
try:
    import jax
except ImportError:
    print("JAX is not installed here")
    raise SystemExit(0)

jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(address, int(size), int(rank))
import jax.numpy as jnp  # noqa: E402: after initialize
from jax.experimental import multihost_utils  # noqa: E402

x = jax.random.uniform(jax.random.PRNGKey(int(rank)), (64,))
y = 3 * x - 1
gradient = jax.jit(jax.value_and_grad(lambda w: jnp.mean((w[0] * x + w[1] - y) ** 2)))
w = jnp.zeros(2)
for step in range(1, 101):
    loss, g = gradient(w)
    w = w - 0.5 * jnp.mean(multihost_utils.process_allgather(g), axis=0)
    if rank == "0" and step % 10 == 0:
        print(f"step={step}/100 loss={loss:.6f}", flush=True)
print(f"process {rank}: weight={w[0]:.3f} bias={w[1]:.3f}", flush=True)
