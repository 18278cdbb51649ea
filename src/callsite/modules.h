/* The objects that are loaded in this process, as far as sites have frames in them.
 *
 * They are noted when new sites are, so that who writes at the end of the process need not ask the
 * dynamic loader. Objects that are unloaded stay in the list. Locking: a mutex inside, taken within
 * the loader's; noting must not be done under a lock of ours. Looking up takes none. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPW_MODULE_MOST = 1024, SPW_MODULE_PATH = 512, SPW_MODULE_ID = 20 };

struct spw_module {
    uintptr_t base;            /* what addresses in its file are relative to */
    uintptr_t begin, end;      /* of its code and data */
    uintptr_t dynamic;         /* its dynamic section; 0: none */
    uint8_t id[SPW_MODULE_ID]; /* of the build */
    uint8_t id_bytes;          /* 0: not known */
    char path[SPW_MODULE_PATH];
};

/* Notes what was loaded since the last time; cheap when nothing was. */
void spw_callsite_modules_note(void);

/* How many there are; they are numbered from 0 and stay. */
size_t spw_callsite_modules_count(void);
const struct spw_module *spw_callsite_modules_get(size_t number);

/* Adds one that the dynamic loader does not know. False when there is no room. */
bool spw_callsite_modules_add(const struct spw_module *module);

/* The module of an address, the newest that fits; NULL when it is in none. */
const struct spw_module *spw_callsite_module_of(uintptr_t address);
