/* PyTorch's allocator in this process, and the tensors that the pool serves. All zero bytes is the
 * state before the allocator is found.
 *
 * The comment of a part names the lock that guards it; atomic members may be used without it. It
 * lives as long as the process, also in a child after fork. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bounds.h"
#include "common/map.h"
#include "torch/abi.h"
#include "torch/library.h"

/* The copy of PyTorch's table. Two words for the type stand before the functions. Written once,
 * before it is put in place. */
struct spw_torch_copy {
    spw_torch_code *type[2];
    spw_torch_code *functions[SPW_TORCH_TABLE_MOST];
};

/* The tensors. Guarded by spw_locks.tensors. */
struct spw_torch_tensors {
    struct spw_map by_address;      /* struct spw_torch_record of tensors.c */
    struct spw_torch_record *spare; /* records for the next tensors */
    size_t spare_count;
    struct spw_torch_record *held;
    _Atomic size_t held_count;
    _Atomic int settling; /* threads that settle held records */
};

/* The figures that both parts have. */
enum spw_torch_figure {
    SPW_TORCH_ALLOCATION,
    SPW_TORCH_ACTIVE,
    SPW_TORCH_ALLOCATED_BYTES,
    SPW_TORCH_ACTIVE_BYTES,
    SPW_TORCH_REQUESTED_BYTES,
    SPW_TORCH_FIGURES
};

/* The figures of a device. Guarded by spw_locks.tensors. */
struct spw_torch_device {
    /* Figures of the tensors; only the peaks are those of both parts. */
    struct spw_torch_stat own[SPW_TORCH_FIGURES][SPW_TORCH_KINDS];
    int64_t native[SPW_TORCH_FIGURES][SPW_TORCH_KINDS]; /* current, of the native part */
    int64_t native_reserved;
    struct spw_torch_stat reserved; /* at the program's last query */
    int64_t chunks_peak;
    int64_t chunks_seen[2]; /* chunks created and released before the last reset */
};

struct spw_torch {
    struct spw_torch_library library; /* written once, before the functions are in place */
    _Atomic int special;              /* enum special of functions.c */
    _Atomic uint64_t native_devices;  /* bits of devices where the native part has had memory */
    _Atomic uint64_t asked_devices;   /* bits of devices whose share is known */
    _Atomic double fractions[SPW_DEVICES_MAX]; /* the share of each device's memory that the
                                                * program may use; 0: all */
    atomic_flag looking;                       /* a thread looks for PyTorch */
    atomic_flag taken_out;                     /* PyTorch has its own table again, for good */
    atomic_flag said_cache; /* the line was written that PyTorch's cache serves all tensors */
    struct spw_torch_copy copy;
    _Alignas(64) struct spw_torch_tensors tensors; /* aligned, since each request changes it */
    struct spw_torch_device devices[SPW_DEVICES_MAX];
};

extern struct spw_torch spw_torch;
