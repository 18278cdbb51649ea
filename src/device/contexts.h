/* A table of the contexts that were seen and still exist, each with its device and its legacy
 * default stream.
 *
 * Locking: spw_locks.contexts; nothing is called under this lock. A thread that adds or removes a
 * context also holds spw_locks.process. The table therefore does not change while another thread
 * holds spw_locks.process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "driver/cuda_api.h"
#include "pool/vm_ops.h"

/* A stream and its device. */
struct spw_stream_info {
    struct spw_stream stream;
    int ordinal;
};

/* Copies the entry of a context to *ret_info. Returns false if the context was not seen yet. */
bool spw_device_contexts_find(CUcontext context, struct spw_stream_info *ret_info);

/* Adds the context that info->stream names. Returns true if the context is in the table afterwards,
 * whoever added it. Returns false if there is no memory for the entry. */
bool spw_device_contexts_add(const struct spw_stream_info *info);

/* Removes a context and copies its entry to *ret_info. Returns false if the context is not in the
 * table. */
bool spw_device_contexts_remove(CUcontext context, struct spw_stream_info *ret_info);

/* Count the attachments to a context (cuCtxAttach), because the driver does not report their
 * number. The attachment that comes with the context's creation is not counted. Detach returns true
 * if only that attachment is left. */
void spw_device_contexts_attach(CUcontext context);
bool spw_device_contexts_detach(CUcontext context);

/* Iterates over the contexts of a device. Returns the context after *cursor, or NULL after the
 * last. *cursor is 0 at first. */
CUcontext spw_device_contexts_next(int ordinal, size_t *cursor);

/* Returns the number of a device's contexts in the table. */
size_t spw_device_contexts_count(int ordinal);

/* In a child after fork: empties the table. */
void spw_device_contexts_reset(void);
