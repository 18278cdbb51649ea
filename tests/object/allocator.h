/* Calls of PyTorch's allocator as its own code makes them: through the table of the object. */
#pragma once

#include "fake.h"
#include "torch/returned.h"
#include "torch/row.h"

#include <cuda.h>

#include "../preload/check.h"

enum { MIB = 1 << 20 };

/* The function of a slot, to be called with the object first. */
#define SLOT(function, result, ...)                                                                \
    ((result(*)(__VA_ARGS__))atomic_load(                                                          \
        &fake_allocator->table)[spw_torch_row_of(2, 11)->slots[SPW_TORCH_##function]])

/* Calls the function of a slot that returns an object in memory, at `ret`. */
#define CALL_INTO(function, type, ret, ...)                                                        \
    SPW_TORCH_CALL(type, SLOT(function, void, void), ret, __VA_ARGS__)

typedef void *into_size_function(void *ret, void *self, size_t bytes);
typedef void *into_device_function(void *ret, void *self, int8_t device);
typedef void *into_state_function(void *ret, void *self, int8_t device, void *state);
typedef void *into_memory_function(void *ret, void *self, void *memory);
typedef void *into_pool_function(void *ret, void *self, struct spw_torch_pool_id id, bool traces);

static inline struct spw_torch_data_ptr tensor_new(size_t bytes)
{
    struct spw_torch_data_ptr tensor;

    CALL_INTO(ALLOCATE, into_size_function, &tensor, fake_allocator, bytes);
    return tensor;
}

static inline void tensor_end(struct spw_torch_data_ptr *tensor)
{
    if (tensor->context != NULL) {
        tensor->deleter(tensor->context);
    }
    tensor->data = tensor->context = NULL;
}

static inline void *raw_new(size_t bytes)
{
    return SLOT(RAW_ALLOC, void *, void *, size_t)(fake_allocator, bytes);
}

static inline void *raw_new_on(size_t bytes, cudaStream_t stream)
{
    return SLOT(RAW_ALLOC_WITH_STREAM, void *, void *, size_t, cudaStream_t)(fake_allocator, bytes,
                                                                             stream);
}

static inline void raw_end(void *memory)
{
    SLOT(RAW_DELETE, void, void *, void *)(fake_allocator, memory);
}

static inline void tensor_use(const struct spw_torch_data_ptr *tensor, cudaStream_t stream)
{
    const struct spw_torch_stream used = {SPW_TORCH_CUDA, 0, (int64_t)(uintptr_t)stream};

    SLOT(RECORD_STREAM, void, void *, const void *, struct spw_torch_stream)
    (fake_allocator, tensor, used);
}

static inline void pool_begin(uint64_t id)
{
    SLOT(BEGIN_ALLOCATE_TO_POOL, void, void *, int8_t, struct spw_torch_pool_id, void *)
    (fake_allocator, 0, (struct spw_torch_pool_id){0, id}, NULL);
}

static inline void pool_end(uint64_t id)
{
    SLOT(END_ALLOCATE_TO_POOL, void, void *, int8_t, struct spw_torch_pool_id)
    (fake_allocator, 0, (struct spw_torch_pool_id){0, id});
}

static inline void empty_cache(void)
{
    SLOT(EMPTY_CACHE, void, void *, struct spw_torch_pool_id)
    (fake_allocator, (struct spw_torch_pool_id){0, 0});
}

/* The segments of a snapshot, of one private pool or (0) of all; fake_delete ends them and their
 * blocks. */
static inline struct spw_torch_segment_info *segments_new(uint64_t pool, size_t *ret_count)
{
    union {
        struct spw_torch_snapshot snapshot;
        char room[256];
    } all = {.room = {0}};
    struct spw_torch_segment_info *segments;

    CALL_INTO(SNAPSHOT, into_pool_function, &all, fake_allocator,
              ((struct spw_torch_pool_id){0, pool}), true);
    segments = all.snapshot.segments.begin;
    *ret_count = (size_t)((struct spw_torch_segment_info *)all.snapshot.segments.end - segments);
    return segments;
}

static inline void segments_end(struct spw_torch_segment_info *segments, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fake_delete(segments[i].blocks.begin);
    }
    fake_delete(segments);
}

static inline void set_history(bool on)
{
    SLOT(RECORD_HISTORY, void, void *, bool, void *, size_t, uint64_t, uint64_t, const void *)
    (fake_allocator, on, NULL, 0, 0, 0, NULL);
}

static inline void set_enabled(bool on)
{
    SLOT(ENABLE, void, void *, bool)(fake_allocator, on);
}

static inline void set_fraction(double fraction)
{
    SLOT(SET_MEMORY_FRACTION, void, void *, double, int8_t)(fake_allocator, fraction, 0);
}

/* DeviceStats, with room. */
union stats {
    struct spw_torch_figures figures;
    char bytes[SPW_TORCH_FIGURES_MOST];
};

static inline void get_stats(union stats *ret_stats)
{
    CALL_INTO(GET_DEVICE_STATS, into_device_function, ret_stats, fake_allocator, 0);
}

static inline int64_t allocated_bytes(void)
{
    union stats stats;

    get_stats(&stats);
    return stats.figures.allocated_bytes[SPW_TORCH_ALL].current;
}

/* Puts a value into each word of a block. */
static inline void fill(const void *memory, size_t bytes, uint32_t value, cudaStream_t stream)
{
    MUST(cuMemsetD32Async((CUdeviceptr)(uintptr_t)memory, value, bytes / sizeof(value), stream));
}

/* The number of words of a block that are not as expected, after the stream's work. */
static inline size_t count_wrong(const void *memory, size_t bytes, uint32_t expected,
                                 cudaStream_t stream)
{
    uint32_t *words = malloc(bytes);
    size_t wrong = 0;

    MUST(cuMemcpyDtoHAsync(words, (CUdeviceptr)(uintptr_t)memory, bytes, stream));
    MUST(cudaStreamSynchronize(stream));
    for (size_t i = 0; i < bytes / sizeof(expected); i++) {
        wrong += words[i] != expected;
    }
    free(words);
    return wrong;
}
