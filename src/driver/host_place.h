/* Finds out where the driver can make chunks of host memory, without risk for the process.
 *
 * cuMemCreate at a NUMA node of the host kills the process on some machines (nccl#2106,
 * gvisor#12876) and is refused on others (nccl#2190). So each place is tried in a helper process
 * (system/child.h), `spillway _host-chunks`, which makes a chunk, maps it and copies through it.
 * The order is: the NUMA node of the device, the other nodes with CPUs and memory, and the host
 * without a node (CUDA 13). A place that the device's attributes rule out is not tried.
 *
 * A helper loads the driver and creates a context. On a real GPU this takes about half a second,
 * and some hundred MiB of device memory while the helper runs. So nothing is tried before memory is
 * short, and the verdict is kept (host_verdict.h). Not to be called with a lock of a pool held. */
#pragma once

#include <stdbool.h>

#include "driver/cuda_api.h"

/* The exit codes of `spillway _host-chunks`. */
enum spw_host_answer {
    SPW_HOST_WORKS,    /* made, mapped, used */
    SPW_HOST_REFUSED,  /* the driver does not make, map or use it */
    SPW_HOST_MADE,     /* made, but not used: there was no context, as on a full device */
    SPW_HOST_UNTRIED,  /* the process could not try */
    SPW_HOST_CRASHED,  /* killed by a signal; like the next, no exit code */
    SPW_HOST_NO_ANSWER /* not in time */
};

/* The device, and the means to try its places. */
struct spw_host_question {
    const char *command; /* path of the spillway command; NULL: there is none */
    const char *library; /* path of the driver */
    int ordinal;         /* of the device */
    int own_node;        /* the NUMA node of the device; negative: unknown */
    bool nodes, plain;   /* the device's attributes allow: a NUMA node; the host without a node */
    bool simulated;
    /* Receives the result of each place that was tried; may be NULL. */
    void (*tell)(void *context, CUmemLocation place, enum spw_host_answer answer, const char *said);
    void *context;
};

/* Tries the places until one works. False when none does. *ret_certain: the next process will get
 * the same answer, so the answer may be kept. */
bool spw_driver_host_place_find(const struct spw_host_question *question, CUmemLocation *ret_place,
                                bool *ret_certain);

/* The folder above the machine's files: "" for the machine itself, NULL for a simulated machine
 * without files. */
const char *spw_driver_host_root(bool simulated);

/* The path of the command that was installed with the object in `folder`; NULL, when there is none
 * or `folder` is NULL. `buffer` is of `capacity` bytes. */
const char *spw_driver_host_command(const char *folder, char *buffer, size_t capacity);

/* Names a place: "NUMA node 0 of the host", "the host". */
const char *spw_driver_host_text(CUmemLocation place, char *buffer, size_t capacity);
