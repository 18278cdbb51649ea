/* Finds the memory that a call uses by the addresses in the call's arguments. Calls are searched
 * only after memory has been short for the first time, or while their uses are recorded.
 *
 * The driver is asked once for the layout of a kernel's parameters. Layouts are stored by kernel
 * handle until code is unloaded, because the driver may reuse the handle then. Locking:
 * spw_locks.layouts while a layout is entered; reading takes no lock. */
#pragma once

#include "migrate/learn/access_log.h"
#include "process/process.h"
#include "record/record.h"
#include "submit/use.h"

enum { SPW_USE_ADDRESSES = 192 };

struct spw_arguments {
    bool known;  /* the call shows no sign of using memory that is not at `addresses` */
    bool kernel; /* the call launches a kernel, which may read more addresses from memory */
    size_t count;
    uint64_t addresses[SPW_USE_ADDRESSES]; /* addresses in spillway's pools */
};

/* Returns true if a host tier or the recording needs to know the memory of calls, and the current
 * call is the program's own. */
static inline bool spw_submit_arguments_wanted(void)
{
    return SPW_UNLIKELY(atomic_load_explicit(&spw_migrate_access_log_count, memory_order_relaxed) >
                            0 ||
                        spw_record_uses()) &&
           !spw_driver_inside();
}

/* Fills *ret_use with the addresses in a launch's parameters. The parameters are either separate
 * (`params`) or in one buffer (`extra`). ret_use->known is false if the kernel may access memory
 * that its parameters do not name (indirect.h). */
void spw_submit_arguments_launch(struct spw_arguments *ret_use, CUfunction function, void **params,
                                 void **extra);

/* Like spw_submit_arguments_launch, for a kernel that is not launched now. Returns false if some of
 * its parameters cannot be read. */
bool spw_submit_arguments_read(struct spw_arguments *ret_use, CUfunction function, void **params,
                               void **extra);

/* Describes a call whose arguments name all memory that it uses. The description has no address
 * yet. */
static inline void spw_submit_arguments_touch(struct spw_arguments *ret_use)
{
    ret_use->known = true;
    ret_use->kernel = false;
    ret_use->count = 0;
}

/* Describes a call that is not searched for addresses. Such a call may use any memory. */
static inline void spw_submit_arguments_anything(struct spw_arguments *ret_use)
{
    ret_use->known = false;
    ret_use->kernel = false;
    ret_use->count = 0;
}

/* Adds `word` if it is an address in one of spillway's pools. */
void spw_submit_arguments_add(struct spw_arguments *use, uint64_t word);

/* Calls spw_submit_use_expect (use.h) for a described call. */
static inline void spw_submit_arguments_expect(const struct spw_arguments *use, CUstream stream,
                                               bool per_thread)
{
    spw_submit_use_expect(use->addresses, use->count, stream, per_thread);
}

/* The slow part of spw_submit_arguments_note_anything. */
void spw_submit_arguments_note_unknown(void);

/* Calls spw_submit_use_note (use.h) for a described call. */
void spw_submit_arguments_note(const struct spw_arguments *use);

/* Forgets all layouts. Called when code is unloaded, because handles may then be reused. */
void spw_submit_arguments_forget_layouts(void);

/* Reports a call that may use any memory and is not described. Does nothing if nobody needs the
 * report. Called at the place of spw_submit_arguments_note. Takes the lease of the devices. */
static inline void spw_submit_arguments_note_anything(void)
{
    if (SPW_UNLIKELY(spw_submit_arguments_wanted())) {
        spw_submit_arguments_note_unknown();
    }
}
