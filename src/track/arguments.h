/* What a call uses: the addresses in its arguments, looked at when memory was short before.
 *
 * The layout of a kernel's parameters is asked of the driver once, kept by its handle, and
 * forgotten when code is unloaded, for then a handle may come again. Locking: a mutex while a
 * layout is entered; reading takes none. */
#pragma once

#include "track/process.h"
#include "migrate/access_log.h"

enum { SPW_USE_ADDRESSES = 192 };

struct spw_arguments {
    bool known;  /* nothing tells that it uses more than these */
    bool kernel; /* which may find others in memory all the same */
    bool first;  /* launch of that kernel */
    size_t count;
    uint64_t addresses[SPW_USE_ADDRESSES]; /* of our pools */
};

/* Whether anybody wants to know, and the call is the program's. */
static inline bool spw_track_arguments_wanted(void)
{
    return SPW_UNLIKELY(atomic_load_explicit(&spw_migrate_access_log_count, memory_order_relaxed) >
                        0) &&
           !spw_driver_inside();
}

/* Takes the addresses of a launch from its parameters, each by itself or all in one buffer; known
 * unless something tells that it reaches more than they name (indirect.h). */
void spw_track_arguments_launch(struct spw_arguments *ret_use, CUfunction function, void **params,
                                void **extra);

/* The same of a call that names all its memory: begins with none. */
static inline void spw_track_arguments_touch(struct spw_arguments *ret_use)
{
    ret_use->known = true;
    ret_use->kernel = ret_use->first = false;
    ret_use->count = 0;
}

/* The same of a call whose memory is not looked for. */
static inline void spw_track_arguments_anything(struct spw_arguments *ret_use)
{
    ret_use->known = false;
    ret_use->kernel = ret_use->first = false;
    ret_use->count = 0;
}

/* Adds an address, if it is one of ours. */
void spw_track_arguments_add(struct spw_arguments *use, uint64_t word);

/* An argument of a call that names its memory by CUdeviceptr. */
#define SPW_USE_ARGUMENT(use, argument)                                                            \
    _Generic((argument), CUdeviceptr                                                               \
             : spw_track_arguments_add((use), (uint64_t)(uintptr_t)(argument)), default            \
             : (void)0)

/* Before the call passes the gate: tells the tiers what will be used, and on which stream;
 * `per_thread` as in track/stream.h. */
void spw_track_arguments_expect(const struct spw_arguments *use, CUstream stream, bool per_thread);

/* Inside the gate, if it was expected: tells them that they are. */
void spw_track_arguments_note(const struct spw_arguments *use);

/* Code is unloaded: the layouts that are known may be of handles that are no more. */
void spw_track_arguments_forget_layouts(void);
