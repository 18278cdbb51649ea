/* The memory that a call uses, found by the addresses in its arguments. Calls are searched only
 * after memory was short for the first time, or while their uses are recorded.
 *
 * The driver is asked once for the layout of a kernel's parameters. Layouts are kept by kernel
 * handle until code is unloaded, since the driver may reuse the handle then. Locking:
 * spw_locks.layouts while a layout is entered; reading takes no lock. */
#pragma once

#include "migrate/learn/access_log.h"
#include "process/process.h"
#include "record/record.h"
#include "submit/use.h"

enum { SPW_USE_ADDRESSES = 192 };

struct spw_arguments {
    bool known;  /* nothing in the call shows a use of other memory than at `addresses` */
    bool kernel; /* it launches a kernel, which may read more addresses from memory */
    bool first;  /* first launch of that kernel */
    size_t count;
    uint64_t addresses[SPW_USE_ADDRESSES]; /* in our pools */
};

/* True when a host tier or the recording notes memory use, and the call is the program's own. */
static inline bool spw_submit_arguments_wanted(void)
{
    return SPW_UNLIKELY(atomic_load_explicit(&spw_migrate_access_log_count, memory_order_relaxed) >
                            0 ||
                        spw_record_uses()) &&
           !spw_driver_inside();
}

/* Fills *ret_use with the addresses in a launch's parameters, given one by one (`params`) or in one
 * buffer (`extra`). ret_use->known is false when the kernel may reach memory that the parameters do
 * not name (indirect.h). */
void spw_submit_arguments_launch(struct spw_arguments *ret_use, CUfunction function, void **params,
                                 void **extra);

/* The same for a kernel that is not launched now. False when its parameters cannot all be read. */
bool spw_submit_arguments_read(struct spw_arguments *ret_use, CUfunction function, void **params,
                               void **extra);

/* Begins the description of a call whose arguments name all memory that it uses: no address yet. */
static inline void spw_submit_arguments_touch(struct spw_arguments *ret_use)
{
    ret_use->known = true;
    ret_use->kernel = ret_use->first = false;
    ret_use->count = 0;
}

/* Describes a call whose memory is not searched for: it may use any memory. */
static inline void spw_submit_arguments_anything(struct spw_arguments *ret_use)
{
    ret_use->known = false;
    ret_use->kernel = ret_use->first = false;
    ret_use->count = 0;
}

/* Adds `word` if it is an address in one of our pools. */
void spw_submit_arguments_add(struct spw_arguments *use, uint64_t word);

/* spw_submit_use_expect (use.h) for a call that was described. */
static inline void spw_submit_arguments_expect(const struct spw_arguments *use, CUstream stream,
                                               bool per_thread)
{
    spw_submit_use_expect(use->addresses, use->count, stream, per_thread);
}

/* spw_submit_use_note for a call that was described. */
void spw_submit_arguments_note(const struct spw_arguments *use);

/* Forgets every layout: code was unloaded, and handles may be reused. */
void spw_submit_arguments_forget_layouts(void);
