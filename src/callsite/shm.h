/* The call sites of a process as others see them: in shared memory, for a viewer, and for the
 * launcher when the process has died.
 *
 * The process keeps its sites in tables of its own (table.h, strings.h, modules.h) and copies what
 * is new behind what is here; only the charges live here alone. So nothing here is read on the way
 * of an allocation but a site's charge. What is here never changes once `count` tells of it.
 *
 * Locking: publishing is done with the lock of capture.h; charges have the pools'. A reader trusts
 * nothing. Layout changes raise the version; readers refuse other versions. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/devices.h"
#include "pool/charges.h"
#include "callsite/modules.h"
#include "callsite/strings.h"
#include "callsite/table.h"

enum { SPW_CALLSITE_SHM_MAGIC = 0x53535753, SPW_CALLSITE_SHM_VERSION = 1 };
enum { SPW_CALLSITE_MOST = 16384 };
enum { SPW_CALLSITE_SHM_TEXTS = 16 << 20, SPW_CALLSITE_SHM_SITES = 32 << 20 };

struct spw_callsite_shm {
    uint32_t magic;
    uint32_t version;
    uint64_t bytes; /* sizeof(struct spw_callsite_shm) of the writer */
    _Atomic uint32_t count;
    _Atomic uint32_t module_count;
    uint32_t texts_used;
    uint32_t devices;
    struct spw_charges charges[SPW_DEVICES_MAX]; /* their pointers mean the writer's addresses */
    uint32_t apis[SPW_CALLSITE_MOST + 1];        /* by site, texts */
    uint32_t offsets[SPW_CALLSITE_MOST + 1];     /* by site, in units of 8 bytes */
    struct spw_module modules[SPW_MODULE_MOST];
    char texts[SPW_CALLSITE_SHM_TEXTS];
    _Alignas(8) char sites[SPW_CALLSITE_SHM_SITES]; /* struct spw_callsite, whose `api` means
                                                       nothing here */
    struct spw_charge held[SPW_DEVICES_MAX][SPW_CALLSITE_MOST + 1];
};

/* How the memory of a share is made writable; see spw_stats_shm_back. */
typedef bool spw_callsite_shm_back(const void *from, size_t bytes);

/* Begins a share in `share`, zeroed memory, for the first `devices` devices: every charge is 0. In
 * a child after fork too, with `back` NULL: everything is writable. False when it cannot be
 * written.
 */
bool spw_callsite_shm_init(struct spw_callsite_shm *share, uint32_t devices,
                           spw_callsite_shm_back *back);

/* Makes room for one more site than `known`, before its number is given to anybody: without it the
 * site is charged to number 0, for good. */
void spw_callsite_shm_expect(struct spw_callsite_shm *share, uint32_t known);

/* Copies what is new. Interns the names of functions called. */
void spw_callsite_shm_publish(struct spw_callsite_shm *share,
                              const struct spw_callsite_table *sites, struct spw_strings *strings);

/* Makes tables of another process's share, a private copy that may be written: sites and charges
 * become what they are in that process. Return addresses are passed through `move`, which leads
 * them to where this process has the same code. False when it is no share of this version. */
bool spw_callsite_shm_read(struct spw_callsite_shm *share,
                           uint64_t (*move)(uint64_t address, void *context), void *context,
                           struct spw_callsite_table *ret_sites, struct spw_strings *ret_strings);
