/* The call sites of a process in shared memory. A viewer reads them, and so does the launcher after
 * the process has died.
 *
 * The process has its sites in private tables (table.h, strings.h, modules.h), and appends copies
 * of new sites here. Only the charges exist nowhere but here. An allocation therefore writes only
 * the charge of its site here. An entry never changes once `count` includes it.
 *
 * Locking: sites are published under spw_locks.sites. Charges change under the lock of their pool;
 * charges of page-locked memory change under spw_locks.page_locked. A reader must validate
 * everything that it reads. Every change of the layout raises the version; readers refuse other
 * versions. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "callsite/state.h"
#include "callsite/strings.h"
#include "callsite/table.h"
#include "common/bounds.h"
#include "pool/accounts.h"

enum { SPW_CALLSITE_SHM_MAGIC = 0x53535753, SPW_CALLSITE_SHM_VERSION = 4 };
enum { SPW_CALLSITE_MOST = 16384 };
enum { SPW_CALLSITE_SHM_TEXTS = 16 << 20, SPW_CALLSITE_SHM_SITES = 32 << 20 };

struct spw_callsite_shm {
    uint32_t magic;
    uint32_t version;
    uint64_t bytes; /* sizeof(struct spw_callsite_shm) of the process that writes */
    _Atomic uint32_t count;
    _Atomic uint32_t module_count;
    uint32_t texts_used;
    uint32_t devices;
    struct spw_charges charges[SPW_DEVICES_MAX]; /* device memory; pointers are valid only in the
                                                    process that writes */
    struct spw_charges pinned[SPW_DEVICES_MAX];  /* page-locked memory; likewise */
    uint32_t apis[SPW_CALLSITE_MOST + 1];        /* by site: number of the text with the name of the
                                                    API */
    uint32_t offsets[SPW_CALLSITE_MOST + 1]; /* by site: offset in `sites`, in units of 8 bytes */
    struct spw_module modules[SPW_MODULE_MOST];
    char texts[SPW_CALLSITE_SHM_TEXTS];
    _Alignas(8) char sites[SPW_CALLSITE_SHM_SITES]; /* struct spw_callsite; its `api` has no meaning
                                                       here */
    struct spw_charge held[SPW_DEVICES_MAX][SPW_CALLSITE_MOST + 1];
    struct spw_charge held_pinned[SPW_DEVICES_MAX][SPW_CALLSITE_MOST + 1];
};

/* Initialises `share`, which is zeroed memory, for the first `devices` devices. All charges start
 * at 0. `back` is NULL in a child after fork, where all of `share` is already writable. Returns
 * false if the memory cannot be made writable. */
bool spw_callsite_shm_init(struct spw_callsite_shm *share, uint32_t devices,
                           spw_callsite_shm_back *back);

/* Makes the charge of site `known` + 1 writable, before any allocation gets that number. If this
 * fails, the memory of that site is charged to site 0 permanently. */
void spw_callsite_shm_expect(struct spw_callsite_shm *share, uint32_t known);

/* Copies new sites, strings and modules to the share. Interns the names of the called functions. */
void spw_callsite_shm_publish(struct spw_callsite_shm *share,
                              const struct spw_callsite_table *sites, struct spw_strings *strings);

/* Builds tables from `share`, a private and writable copy of another process's memory. The tables
 * then have the sites and charges of that process. `move` translates each return address to the
 * address of the same code in this process. Returns false if the memory is not valid or has another
 * version. */
bool spw_callsite_shm_read(struct spw_callsite_shm *share,
                           uint64_t (*move)(uint64_t address, void *context), void *context,
                           struct spw_callsite_table *ret_sites, struct spw_strings *ret_strings);
