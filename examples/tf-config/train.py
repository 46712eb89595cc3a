"""Trains with MultiWorkerMirroredStrategy; without TensorFlow it prints the cluster that TensorFlow would see."""
import json
import os

config = json.loads(os.environ["TF_CONFIG"])
task, cluster = config["task"], config["cluster"]
print(f"{task['type']} {task['index']} of {sum(map(len, cluster.values()))}: {json.dumps(cluster)}", flush=True)
try:
    import tensorflow as tf
except ImportError:
    print("TensorFlow is not installed here")
    raise SystemExit(0)

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.5), loss="mse")
x = tf.reshape(tf.linspace(0.0, 1.0, 128), (-1, 1))
data = tf.data.Dataset.from_tensor_slices((x, 3 * x - 1)).repeat().batch(32)
for epoch in range(1, 4):
    loss = model.fit(data, steps_per_epoch=30, verbose=0).history["loss"][-1]
    print(f"epoch={epoch}/3 loss={loss:.6f}", flush=True)
print("weight=%.3f bias=%.3f" % tuple(float(v.numpy().ravel()[0]) for v in model.trainable_variables), flush=True)
