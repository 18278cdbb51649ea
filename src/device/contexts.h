/* The contexts that were seen and still exist, each with its device and its legacy default stream.
 *
 * Locking: spw_locks.contexts; nothing is called under this lock. A thread that adds or removes a
 * context also holds spw_locks.process, so the table does not change while another thread holds
 * that lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "driver/cuda_api.h"
#include "pool/vm_ops.h"

/* A stream and the device it belongs to. */
struct spw_stream_info {
    struct spw_stream stream;
    int ordinal;
};

/* Copies the entry of a context to *ret_info; false when the context was not seen yet. */
bool spw_device_contexts_find(CUcontext context, struct spw_stream_info *ret_info);

/* Adds a context, the one that info->stream names. True when it is in the table afterwards, also
 * if another thread has added it first; false without memory. */
bool spw_device_contexts_add(const struct spw_stream_info *info);

/* Removes a context and copies its entry; false when it is not in the table. */
bool spw_device_contexts_remove(CUcontext context, struct spw_stream_info *ret_info);

/* Count the attachments to a context (cuCtxAttach), which the driver does not report. The
 * attachment that comes with the context's creation is not counted; detach returns true when only
 * that one is left. */
void spw_device_contexts_attach(CUcontext context);
bool spw_device_contexts_detach(CUcontext context);

/* Steps through the contexts of a device: returns the one after *cursor (0 to begin with), or NULL
 * after the last. */
CUcontext spw_device_contexts_next(int ordinal, size_t *cursor);

/* How many contexts of a device are in the table. */
size_t spw_device_contexts_count(int ordinal);

/* In a child after fork: empties the table. */
void spw_device_contexts_reset(void);
