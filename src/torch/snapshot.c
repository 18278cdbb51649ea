#include "torch/snapshot.h"

#include "common/minmax.h"
#include "serve/direct.h"
#include "torch/tensors.h"

#include <stdlib.h>
#include <string.h>

/* Memory of the pool: a tensor, or a free run. */
struct piece {
    uint64_t address, bytes;
    uint64_t asked; /* 0: the run is free */
    int device;
    void *stream;
};

struct list {
    struct piece *pieces; /* has room for `capacity` pieces; further ones are only counted */
    size_t count, capacity;
    int device; /* the device whose memory is added */
    bool has_tensors;
};

static void add(struct list *list, const struct piece *piece)
{
    if (list->count < list->capacity) {
        list->pieces[list->count] = *piece;
    }
    list->count++;
}

static void add_tensor(const struct spw_torch_tensor *tensor, void *context)
{
    struct list *list = context;

    if (tensor->device == list->device) {
        add(list, &(struct piece){.address = tensor->address,
                                  .bytes = tensor->bytes,
                                  .asked = tensor->asked,
                                  .device = tensor->device,
                                  .stream = tensor->order.stream.handle});
    }
}

static void add_tensors(struct list *list)
{
    if (!list->has_tensors) {
        list->has_tensors = true;
        spw_torch_tensors_each(add_tensor, list);
    }
}

/* Tensors are added under the pool's lock. A tensor is removed before its block is freed, and
 * entered after its block was allocated. Its block can therefore not become free memory in
 * between. */
static void add_free(uint64_t address, uint64_t bytes, void *context)
{
    struct list *list = context;

    add_tensors(list);
    add(list, &(struct piece){.address = address, .bytes = bytes, .device = list->device});
}

static void add_all(struct list *list)
{
    list->count = 0;
    for (list->device = 0; list->device < spw_device_count(); list->device++) {
        list->has_tensors = false;
        spw_serve_direct_each_free(list->device, add_free, list);
        add_tensors(list);
    }
}

/* Returns true if the native allocator had a segment at this place when it was asked, and has given
 * it back since then. */
static bool was_native(const struct spw_torch_vector *segments, const struct piece *piece)
{
    const struct spw_torch_segment_info *end = segments->end;

    for (const struct spw_torch_segment_info *at = segments->begin; at < end; at++) {
        if (at->address < piece->address + piece->bytes &&
            piece->address < at->address + at->total_bytes) {
            return true;
        }
    }
    return false;
}

/* Removes pieces beyond the capacity, and free runs that are native segments in the snapshot. */
static void leave_out(struct list *list, const struct spw_torch_vector *segments)
{
    size_t count = spw_min(list->count, list->capacity);

    list->count = 0;
    for (size_t i = 0; i < count; i++) {
        if (list->pieces[i].asked > 0 || !was_native(segments, &list->pieces[i])) {
            list->pieces[list->count++] = list->pieces[i];
        }
    }
}

static void describe(const struct spw_torch_library *library, const struct piece *piece,
                     struct spw_torch_segment_info *ret_segment)
{
    struct spw_torch_block_info *block = library->new_memory(sizeof(*block));
    bool used = piece->asked > 0;

    *block = (struct spw_torch_block_info){
        .bytes = piece->bytes, .requested_bytes = piece->asked, .allocated = used, .active = used};
    *ret_segment = (struct spw_torch_segment_info){
        .device = (int8_t)piece->device,
        .registrations = -1,
        .address = piece->address,
        .total_bytes = piece->bytes,
        .requested_bytes = piece->asked,
        .allocated_bytes = used ? piece->bytes : 0,
        .active_bytes = used ? piece->bytes : 0,
        .stream = piece->stream,
        .is_large = piece->bytes > SPW_TORCH_SMALL_MOST,
        .blocks = {block, block + 1, block + 1},
    };
}

/* Makes room for more segments. The existing segments are copied as bytes, because no segment
 * points into itself. */
static struct spw_torch_segment_info *grow(const struct spw_torch_library *library,
                                           struct spw_torch_vector *segments, size_t more)
{
    size_t bytes = (size_t)((char *)segments->end - (char *)segments->begin);
    size_t all = bytes + more * sizeof(struct spw_torch_segment_info);
    char *grown = library->new_memory(all);

    if (bytes > 0) {
        memcpy(grown, segments->begin, bytes);
    }
    if (segments->begin != NULL) {
        library->delete_memory(segments->begin);
    }
    segments->begin = grown;
    segments->end = grown + all;
    segments->capacity = grown + all;
    return (void *)(grown + bytes);
}

void spw_torch_snapshot_add(const struct spw_torch_library *library,
                            struct spw_torch_snapshot *snapshot)
{
    struct spw_torch_segment_info *segments;
    struct list list = {0};

    add_all(&list);
    list.capacity = list.count;
    list.pieces = list.count > 0 ? malloc(list.count * sizeof(*list.pieces)) : NULL;
    if (list.pieces == NULL) {
        return;
    }
    add_all(&list);
    leave_out(&list, &snapshot->segments);
    segments = grow(library, &snapshot->segments, list.count);
    for (size_t i = 0; i < list.count; i++) {
        describe(library, &list.pieces[i], &segments[i]);
    }
    free(list.pieces);
}
