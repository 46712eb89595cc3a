"""Fits a line with TensorFlow; gradients are averaged over all ranks by Horovod."""
import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
tf.random.set_seed(hvd.rank())
x = tf.random.uniform([64, 1])
y = 3 * x - 1
weight, bias = tf.Variable([[float(hvd.rank())]]), tf.Variable([0.0])
hvd.broadcast_variables([weight, bias], root_rank=0)
for step in range(200):
    with tf.GradientTape() as plain:
        loss = tf.reduce_mean((x @ weight + bias - y) ** 2)
    tape = hvd.DistributedGradientTape(plain)
    for variable, gradient in zip((weight, bias), tape.gradient(loss, [weight, bias])):
        variable.assign_sub(0.5 * gradient)
print(f"rank {hvd.rank()} of {hvd.size()}: loss={float(loss):.6f} weight={float(weight[0, 0]):.3f} bias={float(bias[0]):.3f}", flush=True)
hvd.shutdown()
