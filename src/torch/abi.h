/* C structs for the C++ objects that PyTorch's CUDAAllocator takes and returns.
 *
 * Sources: c10/core/Allocator.h, c10/core/CachingDeviceAllocator.h and
 * c10/cuda/CUDACachingAllocator.h. The objects are the same in every version that has a row in
 * versions.def: scripts/torch-rows writes a row only if the headers of the version agree with this
 * file. Values only, no locks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPW_TORCH_CUDA = 1 }; /* c10::DeviceType */

typedef void spw_torch_deleter(void *context);

/* c10::DataPtr: an address, and the function that frees the memory. */
struct spw_torch_data_ptr {
    void *data;
    spw_torch_deleter *deleter;
    void *context;
    int8_t device_type;
    int8_t device;
};

/* c10::Stream and c10::cuda::CUDAStream. */
struct spw_torch_stream {
    int8_t device_type;
    int8_t device;
    int64_t id;
};

/* c10::MempoolId_t. {0, 0}: no private pool. */
struct spw_torch_pool_id {
    uint64_t first, second;
};

/* std::vector. */
struct spw_torch_vector {
    void *begin, *end, *capacity;
};

/* c10::CachingAllocator::Stat. There is one Stat for all blocks, one for small blocks and one for
 * large blocks. */
struct spw_torch_stat {
    int64_t current, peak, allocated, freed;
};

enum { SPW_TORCH_SMALL_MOST = 1 << 20 }; /* most bytes of a block that PyTorch calls small */

enum { SPW_TORCH_ALL, SPW_TORCH_SMALL, SPW_TORCH_LARGE, SPW_TORCH_KINDS };

/* The beginning of c10::CachingDeviceAllocator::DeviceStats. The row of a version has the offsets
 * of the other figures, and of the table of private pools if there is one. That table is a
 * ska::flat_hash_map. If it has more than one entry, the entries must be deleted. */
struct spw_torch_figures {
    struct spw_torch_stat allocation[SPW_TORCH_KINDS], segment[SPW_TORCH_KINDS];
    struct spw_torch_stat active[SPW_TORCH_KINDS], inactive_split[SPW_TORCH_KINDS];
    struct spw_torch_stat allocated_bytes[SPW_TORCH_KINDS], reserved_bytes[SPW_TORCH_KINDS];
};

struct spw_torch_table {
    void *entries;
    uint64_t last; /* number of the last entry */
    uint64_t rest[2];
};

enum { SPW_TORCH_FIGURES_MOST = 1152 }; /* bytes of DeviceStats, at most */

/* c10::CachingDeviceAllocator::BlockInfo. */
struct spw_torch_block_info {
    uint64_t bytes, requested_bytes;
    int32_t gc_counter;
    bool allocated, active;
    void *context[2];
};

/* c10::CachingDeviceAllocator::SegmentInfo. */
struct spw_torch_segment_info {
    int8_t device;
    int32_t registrations; /* since PyTorch 2.11; padding in older versions */
    uint64_t address, total_bytes, requested_bytes, allocated_bytes, active_bytes;
    void *stream;
    bool is_large, is_expandable;
    struct spw_torch_pool_id owner;
    struct spw_torch_vector blocks;
    void *context[2];
};

/* The beginning of c10::cuda::CUDACachingAllocator::SnapshotInfo. */
struct spw_torch_snapshot {
    struct spw_torch_vector segments;
};

/* c10::cuda::CUDACachingAllocator::CheckpointDelta. */
struct spw_torch_checkpoint {
    struct spw_torch_vector freed;
    struct spw_torch_vector allocated; /* struct spw_torch_data_ptr */
};

/* c10::cuda::CUDACachingAllocator::ShareableHandle. Its string has one of two forms. Both begin
 * with the address of the text. */
struct spw_torch_shareable {
    ptrdiff_t offset;
    char *text;
    size_t length; /* length in the newer form; the older form has it three words before the text */
    char rest[16];
};
