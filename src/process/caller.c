#include "process/caller.h"

#include "callsite/modules.h"
#include "common/hash.h"
#include "common/options.h"
#include "common/path.h"
#include "system/log.h"

#include <string.h>

enum { KIND_BITS = 2 };

_Thread_local const void *spw_process_caller_other __attribute__((tls_model("initial-exec")));

static const struct {
    const char *part;
    enum spw_caller kind;
} callers[] = {
#define SPW_CALLER(part, kind, why) {part, SPW_CALLER_##kind},
#include "process/callers.def"
#undef SPW_CALLER
};

static bool matches(const char *path, const char *part)
{
    return strchr(part, '/') != NULL ? strstr(path, part) != NULL
                                     : strncmp(spw_path_name(path), part, strlen(part)) == 0;
}

/* True if the user's list has a beginning of the file name. */
static bool is_named(const char *name)
{
    const char *at = spw_option_get(SPW_OPT_SPILLWAY_PASS, NULL, 0).text;

    while (at != NULL && *at != '\0') {
        size_t length = strcspn(at, ",");

        if (length > 0 && strncmp(name, at, length) == 0) {
            return true;
        }
        at += length + (at[length] == ',');
    }
    return false;
}

static enum spw_caller kind_of(const char *path)
{
    for (size_t i = 0; i < sizeof(callers) / sizeof(callers[0]); i++) {
        if (matches(path, callers[i].part)) {
            return callers[i].kind;
        }
    }
    return is_named(spw_path_name(path)) ? SPW_CALLER_SHARES : SPW_CALLER_OTHER;
}

/* Asks the dynamic loader. */
static enum spw_caller look_up(const void *address)
{
    const struct spw_module *module;
    enum spw_caller kind;

    spw_callsite_modules_note();
    module = spw_callsite_module_of((uintptr_t)address);
    kind = module != NULL ? kind_of(module->path) : SPW_CALLER_OTHER;
    if (kind == SPW_CALLER_SHARES) {
        spw_log(SPW_LOG_INFO, "allocations of %s are left to the driver",
                spw_path_name(module->path));
    }
    return kind;
}

enum spw_caller spw_process_caller_find(const void *address)
{
    uint64_t word = (uint64_t)(uintptr_t)address;
    size_t slot = spw_hash_word(word) >> (64 - SPW_CALLERS_BITS);
    _Atomic uint64_t *place = &spw_process.callers[slot];
    uint64_t known = atomic_load_explicit(place, memory_order_relaxed);

    if (SPW_UNLIKELY(known >> KIND_BITS != word)) {
        known = word << KIND_BITS | (uint64_t)look_up(address);
        atomic_store_explicit(place, known, memory_order_relaxed);
    }
    known &= (1 << KIND_BITS) - 1;
    if (known == SPW_CALLER_OTHER) {
        spw_process_caller_other = address;
    }
    return (enum spw_caller)known;
}
