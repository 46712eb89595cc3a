#pragma once
/* machine - what this machine has. */
#include <stdint.h>

int64_t machine_cpus(void);
uint64_t machine_memory(void);
/* As the NVIDIA driver lists them in /proc; without that list, as `nvidia-smi -L` does, if there is one: it may
 * take seconds, and its answer is kept for the life of the process. */
int64_t machine_gpus(void);
