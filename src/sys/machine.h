#pragma once
/* machine - what this machine has. */
#include <stdbool.h>
#include <stdint.h>

#define MACHINE_ID_LEN 32

/* The name that the machine has for good, from /etc/machine-id; false: it has none, or none yet.  It is nobody
 * else's business: send a digest of it. */
bool machine_id(char id[static MACHINE_ID_LEN + 1]);
int64_t machine_cpus(void);
uint64_t machine_memory(void);
/* As the NVIDIA driver lists them in /proc; without that list, as `nvidia-smi -L` does, if there is one: it may
 * take seconds, and its answer is kept for the life of the process. */
int64_t machine_gpus(void);
