/* Finds out where the driver can create chunks of host memory, without risk for the process.
 *
 * On some machines, cuMemCreate at a NUMA node of the host kills the process (nccl#2106,
 * gvisor#12876). On others it is refused (nccl#2190). Each place is therefore tried in a helper
 * process (system/child.h), `spillway _host-chunks`. The helper creates a chunk, maps it and copies
 * through it. The places are tried in this order: the NUMA node of the device, the other nodes with
 * CPUs and memory, and the host without a node (CUDA 13). A place is not tried if the device's
 * attributes exclude it.
 *
 * A helper loads the driver and creates a context. On a real GPU this takes about half a second,
 * and some hundred MiB of device memory while the helper runs. Nothing is therefore tried before
 * memory is short, and the verdict is stored (host_verdict.h). Not to be called with a lock of a
 * pool held. */
#pragma once

#include <stdbool.h>

#include "driver/cuda_api.h"

/* The exit codes of `spillway _host-chunks`. */
enum spw_host_answer {
    SPW_HOST_WORKS,    /* the chunk was created, mapped and used */
    SPW_HOST_REFUSED,  /* the driver refused to create, map or use the chunk */
    SPW_HOST_MADE,     /* the chunk was created but not used, because there was no context, as on a
                          full device */
    SPW_HOST_UNTRIED,  /* the helper could not try */
    SPW_HOST_CRASHED,  /* a signal killed the helper; this and the next value are not exit codes */
    SPW_HOST_NO_ANSWER /* the helper did not end in time */
};

/* The device, and all that is needed to try its places. */
struct spw_host_question {
    const char *command; /* path of the spillway command; NULL: there is none */
    const char *library; /* path of the driver */
    int ordinal;         /* ordinal of the device */
    int own_node;        /* NUMA node of the device; negative: unknown */
    bool nodes, plain;   /* the attributes of the device allow NUMA nodes (`nodes`) or the host
                            without a node (`plain`) */
    bool simulated;
    /* Receives the result of each place that was tried; may be NULL. */
    void (*tell)(void *context, CUmemLocation place, enum spw_host_answer answer, const char *said);
    void *context;
};

/* Tries the places until one works. Returns false if none works. *ret_certain is true if the next
 * process will get the same result, so that the result may be stored. */
bool spw_driver_host_place_find(const struct spw_host_question *question, CUmemLocation *ret_place,
                                bool *ret_certain);

/* Returns the folder that contains the files of the machine: "" for the real machine, NULL for a
 * simulated machine without files. */
const char *spw_driver_host_root(bool simulated);

/* Returns the path of the command that was installed with the object in `folder`; NULL if there is
 * none, or if `folder` is NULL. `buffer` has `capacity` bytes. */
const char *spw_driver_host_command(const char *folder, char *buffer, size_t capacity);

/* Returns the name of a place: "NUMA node 0 of the host", "the host". */
const char *spw_driver_host_text(CUmemLocation place, char *buffer, size_t capacity);
