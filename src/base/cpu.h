/* cpu.h: what this machine really grants: cores (affinity and cgroup quota) and memory. */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include <stdint.h>

/* The smaller of the affinity mask and the cgroup quota (v1 and v2, every level; rounded up, so
 * that all of it can be used), at least 1. */
uint32_t cpu_n_cores(void);

/* The smaller of MemAvailable and the room left in the cgroup (v1 and v2, every level), in bytes;
 * 0 when the system does not say. */
uint64_t mem_available_bytes(void);

#endif
