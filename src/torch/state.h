/* PyTorch's allocator in this process, and the tensors that the pool serves. All zero bytes is the
 * state before the allocator is found.
 *
 * The comment of a part names the lock that guards it. Atomic members may be used without the lock.
 * The state lives as long as the process, and a child after fork keeps it. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bounds.h"
#include "common/map.h"
#include "torch/abi.h"
#include "torch/library.h"

/* The copy of PyTorch's table. As in C++, two words that describe the type precede the functions.
 * Written once, before PyTorch uses it. */
struct spw_torch_copy {
    spw_torch_code *type[2];
    spw_torch_code *functions[SPW_TORCH_TABLE_MOST];
};

/* The tensors. Guarded by spw_locks.tensors. */
struct spw_torch_tensors {
    struct spw_map by_address;      /* struct spw_torch_record of tensors.c */
    struct spw_torch_record *spare; /* unused records for the next tensors */
    size_t spare_count;
    struct spw_torch_record *held;
    _Atomic size_t held_count;
    _Atomic int settling; /* number of threads that settle held records */
};

/* Reports that the simulated GPU has not taken yet. Guarded by spw_locks.tensors. */
struct spw_torch_reports {
    struct spw_torch_report *list; /* see reports.c */
    size_t capacity;
    _Atomic uint64_t count;
    bool wanted; /* the GPU is simulated; written once, before the functions are put in place */
};

/* The figures that both the pool and the native allocator have. The last ones, from ACTIVE on,
 * count freed memory until no stream uses it. */
enum spw_torch_figure {
    SPW_TORCH_ALLOCATION,
    SPW_TORCH_ALLOCATED_BYTES,
    SPW_TORCH_REQUESTED_BYTES,
    SPW_TORCH_ACTIVE,
    SPW_TORCH_ACTIVE_BYTES,
    SPW_TORCH_FIGURES
};

/* The figures of a device. Guarded by spw_locks.tensors. */
struct spw_torch_device {
    /* The figures of the tensors. The peaks alone are those of both parts. */
    struct spw_torch_stat own[SPW_TORCH_FIGURES][SPW_TORCH_KINDS];
    int64_t native[SPW_TORCH_FIGURES][SPW_TORCH_KINDS]; /* current figures of the native
                                                           allocator */
    int64_t native_reserved;
    struct spw_torch_stat reserved; /* value at the program's last query */
    int64_t chunks_peak;
    int64_t chunks_seen[2]; /* chunks created and released before the last reset */
};

struct spw_torch {
    struct spw_torch_library library; /* written once, before the functions are put in place */
    _Atomic int special;              /* enum special of functions.c */
    _Atomic uint64_t native_devices;  /* a bit for each device where the native allocator has had
                                         memory */
    _Atomic uint64_t asked_devices;   /* a bit for each device whose share is known */
    _Atomic double fractions[SPW_DEVICES_MAX]; /* the share of each device's memory that the program
                                                  may use; 0: all */
    atomic_flag looking;                       /* a thread is looking for PyTorch */
    atomic_flag taken_out;                     /* PyTorch has its own table again, permanently */
    atomic_flag said_cache; /* the message was written that PyTorch's cache serves all tensors */
    struct spw_torch_copy copy;
    _Alignas(64) struct spw_torch_tensors tensors; /* on cache lines of their own, because each
                                                      request changes them */
    struct spw_torch_reports reports;
    struct spw_torch_device devices[SPW_DEVICES_MAX];
};

extern struct spw_torch spw_torch;
