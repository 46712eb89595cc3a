"""A server and a trainer in one file, as Paddle's own are: TRAINING_ROLE says which.

The servers hold one weight each; a trainer fits y = w0 + w1 * x on its shard and sends its gradients to them.  It needs
no Paddle: only the names that Paddle's launchers set.
"""
import os
import random
import socket
import socketserver
import threading

RATE, STEPS = 0.2, 200


class Server(socketserver.StreamRequestHandler):
    weight, lock = 0.0, threading.Lock()

    def handle(self):
        for line in self.rfile:  # a gradient for each line; the answer is the weight
            with Server.lock:
                Server.weight -= RATE * float(line) / int(os.environ["TRAINERS"])
            self.wfile.write(f"{Server.weight}\n".encode())


def serve():
    socketserver.ThreadingTCPServer.allow_reuse_address = True
    print("serving at", os.environ["SERVER_ENDPOINT"], flush=True)
    socketserver.ThreadingTCPServer((os.environ["POD_IP"], int(os.environ["PADDLE_PORT"])), Server).serve_forever()


def train():
    me, n = int(os.environ["PADDLE_TRAINER_ID"]), int(os.environ["PADDLE_TRAINERS_NUM"])
    random.seed(me)
    shard = [(x, 1 + 2 * x) for x in (random.random() for _ in range(100))]
    servers = []
    for endpoint in os.environ["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")[:2]:
        host, port = endpoint.rsplit(":", 1)
        servers.append(socket.create_connection((host, int(port))).makefile("rw"))
    w = [0.0] * len(servers)
    for step in range(1, STEPS + 1):
        error = [(w[0] + (w[1] * x if len(w) > 1 else 2 * x)) - y for x, y in shard]
        gradients = [sum(error) / len(shard), sum(e * x for e, (x, _) in zip(error, shard)) / len(shard)]
        for i, s in enumerate(servers):
            s.write(f"{gradients[i]}\n")
            s.flush()
            w[i] = float(s.readline())
        if step % 20 == 0:
            print(f"trainer {me} of {n}: step={step}/{STEPS} loss={sum(e * e for e in error) / len(shard):.6f}", flush=True)


serve() if os.environ["TRAINING_ROLE"] == "PSERVER" else train()
