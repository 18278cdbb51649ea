/* Chunks and ranges of addresses. Every function ends the process if the driver refuses, unless it
 * returns a result. */
#pragma once

#include "probe.h"

enum tier { ON_DEVICE, ON_HOST };

/* The name of a tier. */
const char *memory_tier(enum tier tier);

/* The node for host chunks: the first that works; probe.node is set, -1 if none does. */
bool memory_find_host(void);

/* Takes host chunks from another place: "HOST" is that location, a number a node. */
bool memory_find_host_at(const char *place);

/* What a chunk of that tier is made with. */
CUmemAllocationProp memory_properties(enum tier tier);

/* Read and write access, for the device. */
CUmemAccessDesc memory_access(void);

CUmemGenericAllocationHandle memory_create(enum tier tier, size_t bytes);
CUdeviceptr memory_reserve(size_t bytes);
void memory_map(CUdeviceptr address, size_t bytes, CUmemGenericAllocationHandle chunk);
void memory_allow(CUdeviceptr address, size_t bytes);

/* One chunk at an address of its own, accessible; the chunk goes with the mapping. */
CUdeviceptr memory_new(enum tier tier, size_t bytes);

/* Unmaps and frees such an address. */
void memory_delete(CUdeviceptr address, size_t bytes);

/* A range of `count` chunks of `bytes` each, of which tiers[i % period] says the tier. */
CUdeviceptr memory_new_range(const enum tier *tiers, size_t period, size_t bytes, size_t count);

/* Unmaps chunk by chunk and frees. */
void memory_delete_range(CUdeviceptr address, size_t bytes, size_t count);

/* A field of /proc/meminfo or of a file like it, such as /proc/self/status, in bytes (as if it were
 * in kB); 0 if it is not there. */
size_t memory_kilobytes(const char *path, const char *field);
