/* The list of loaded objects that native frames of sites lie in.
 *
 * Objects are added when new sites are found, so that the report at the end of the process need not
 * call the dynamic loader. Unloaded objects stay in the list. Locking: a mutex inside, taken under
 * the loader's lock; spw_callsite_modules_note must not be called with a lock of ours held. Looking
 * up takes no lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPW_MODULE_MOST = 1024, SPW_MODULE_PATH = 512, SPW_MODULE_ID = 20 };

struct spw_module {
    uintptr_t base;            /* load address: subtract it to get addresses of the file */
    uintptr_t begin, end;      /* of its code and data */
    uintptr_t dynamic;         /* its dynamic section; 0: none */
    uint8_t id[SPW_MODULE_ID]; /* the build ID */
    uint8_t id_bytes;          /* 0: not known */
    char path[SPW_MODULE_PATH];
};

/* Adds the objects that were loaded since the last call; cheap when there are none. */
void spw_callsite_modules_note(void);

/* Number of modules, and one of them. Numbers start at 0 and never change. */
size_t spw_callsite_modules_count(void);
const struct spw_module *spw_callsite_modules_get(size_t number);

/* Adds a module of another process. Returns false when the list is full. */
bool spw_callsite_modules_add(const struct spw_module *module);

/* The module that contains an address: the newest when several do, NULL when none does. */
const struct spw_module *spw_callsite_module_of(uintptr_t address);
