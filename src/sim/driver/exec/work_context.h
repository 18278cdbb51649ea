/* The work of a context: its streams, events, modules and local memory.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stddef.h>

#include "sim/driver/exec/fence.h"
#include "sim/driver/exec/stream.h"

struct sim_event;
struct sim_module;

struct sim_work_context {
    struct sim_work_context *next; /* list of all */
    CUcontext ctx;
    struct sim_stream *streams;  /* streams that have not ended or have pending work; the list holds
                                  * a reference to each */
    struct sim_stream **end;     /* the last `next` of that list; NULL: the list is empty */
    struct sim_stream *legacy;   /* created with the context */
    struct sim_stream *internal; /* created at the first cuCtxRecordEvent */
    struct sim_fences waits;     /* cuCtxWaitEvent: all later work waits for them */
    struct sim_event *events;    /* live handles */
    struct sim_module *modules;  /* loaded */
    size_t local_bytes;          /* charged for the local memory of launches */
};

/* The first in the list of all live contexts' work, or NULL. */
struct sim_work_context *sim_work_first(void);
