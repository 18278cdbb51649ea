/* The state of the handlers. All zero bytes is the state before the first call.
 *
 * The comment of a part names the lock that guards it. Atomic members may be used without the lock.
 * The state lives as long as the process. */
#pragma once

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/shm.h"

/* Blocks of other processes that are mapped here. Guarded by spw_locks.imports. A child after fork
 * has none. */
struct spw_serve_imports {
    struct spw_serve_import *first; /* imports.c */
    _Atomic size_t count;
};

/* The call sites whose out-of-memory report was written in full by process `pid`. */
struct spw_serve_oom_reports {
    _Atomic int pid;
    _Atomic uint64_t sites[SPW_CALLSITE_MOST / 64 + 1]; /* one bit for each site */
};

/* The path of this object, or "". */
struct spw_serve_object {
    pthread_once_t once;
    char path[PATH_MAX];
};

struct spw_serve {
    struct spw_serve_imports imports;
    _Atomic unsigned advised; /* bits of enum refusal (ipc.c) whose message was written */
    struct spw_serve_oom_reports reports;
    struct spw_serve_object object;
};

extern struct spw_serve spw_serve;
