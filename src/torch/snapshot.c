#include "torch/snapshot.h"

#include "torch/tensors.h"

#include <stdlib.h>
#include <string.h>

/* The tensors of one moment. */
struct list {
    struct spw_torch_tensor *tensors;
    size_t count, capacity;
};

static void add(const struct spw_torch_tensor *tensor, void *context)
{
    struct list *list = context;

    if (list->count < list->capacity) {
        list->tensors[list->count++] = *tensor;
    }
}

static void describe(const struct spw_torch_library *library, const struct spw_torch_tensor *tensor,
                     struct spw_torch_segment_info *ret_segment)
{
    struct spw_torch_block_info *block = library->new_memory(sizeof(*block));

    *block = (struct spw_torch_block_info){.bytes = tensor->bytes,
                                           .requested_bytes = tensor->asked,
                                           .allocated = true,
                                           .active = true};
    *ret_segment = (struct spw_torch_segment_info){
        .device = (int8_t)tensor->device,
        .registrations = -1,
        .address = tensor->address,
        .total_bytes = tensor->bytes,
        .requested_bytes = tensor->asked,
        .allocated_bytes = tensor->bytes,
        .active_bytes = tensor->bytes,
        .stream = tensor->order.stream.handle,
        .is_large = tensor->bytes > SPW_TORCH_SMALL_MOST,
        .blocks = {block, block + 1, block + 1},
    };
}

/* Makes room for more segments. Those that are there may be moved as bytes: nothing in them points
 * into them. */
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
    struct list list = {.capacity = spw_torch_tensors_count()};
    struct spw_torch_segment_info *segments;

    if (list.capacity == 0) {
        return;
    }
    list.tensors = malloc(list.capacity * sizeof(*list.tensors));
    if (list.tensors == NULL) {
        return;
    }
    spw_torch_tensors_each(add, &list);
    segments = grow(library, &snapshot->segments, list.count);
    for (size_t i = 0; i < list.count; i++) {
        describe(library, &list.tensors[i], &segments[i]);
    }
    free(list.tensors);
}
