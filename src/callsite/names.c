#include "callsite/names.h"

#include "common/hash.h"
#include "callsite/symbols.h"
#include "callsite/table.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MOST = 4096, SLOTS = 1 << 16, SLOTS_USED = SLOTS / 4 * 3 };

struct slot {
    uintptr_t address; /* 0: free */
    struct spw_name name;
};

typedef char *demangle_function(const char *, char *, size_t *, int *);

static struct {
    pthread_mutex_t lock;
    struct slot *slots;
    size_t used;
    _Atomic(demangle_function *) demangle;
    _Atomic int asked;
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Uses the C++ library that the program has loaded; a program without one has no C++ names. The
 * handle is kept: the library stays loaded anyway. */
static void find_demangler(void)
{
    void *library;
    void *found;

    if (atomic_exchange(&known.asked, 1) != 0) {
        return;
    }
    library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    found = library != NULL ? dlsym(library, "__cxa_demangle") : NULL;
    if (found == NULL) {
        atomic_store(&known.asked, 0); /* it may be loaded later */
        return;
    }
    atomic_store(&known.demangle, (demangle_function *)(uintptr_t)found);
}

/* The caller of this and the following functions holds the lock. */
static struct slot *find(uintptr_t address)
{
    size_t slot = (size_t)(spw_hash_mix(0, address) >> 16) & (SLOTS - 1);

    while (known.slots[slot].address != 0 && known.slots[slot].address != address) {
        slot = (slot + 1) & (SLOTS - 1);
    }
    return &known.slots[slot];
}

static const char *readable(const char *mangled)
{
    demangle_function *demangle = atomic_load(&known.demangle);
    char *text = NULL;
    int status;

    if (demangle != NULL && strncmp(mangled, "_Z", 2) == 0) {
        text = demangle(mangled, NULL, NULL, &status);
    }
    return text != NULL ? text : mangled;
}

static void learn(const struct spw_symbol *symbol)
{
    struct slot *slot = find(symbol->address);
    char text[NAME_MOST];

    if (slot->address != 0 || known.used == SLOTS_USED) {
        return;
    }
    known.used++;
    slot->address = symbol->address;
    slot->name.library = symbol->module != NULL ? symbol->module->path : NULL;
    spw_callsite_symbol_text(symbol, text, sizeof(text));
    slot->name.mangled = text[0] != '\0' ? strdup(text) : NULL;
    slot->name.readable = slot->name.mangled != NULL ? readable(slot->name.mangled) : NULL;
}

static bool begin(void)
{
    if (known.slots == NULL) {
        known.slots = calloc(SLOTS, sizeof(*known.slots));
    }
    return known.slots != NULL;
}

void spw_callsite_names_of(const uint64_t *addresses, size_t count, struct spw_name *ret_names)
{
    struct spw_symbol missing[SPW_CALLSITE_NATIVE];
    size_t missed = 0;

    if (atomic_load(&known.demangle) == NULL) {
        find_demangler();
    }
    memset(ret_names, 0, count * sizeof(*ret_names));
    pthread_mutex_lock(&known.lock);
    if (begin()) {
        for (size_t i = 0; i < count; i++) {
            if (find(spw_callsite_call(addresses[i]))->address == 0) {
                missing[missed++].address = spw_callsite_call(addresses[i]);
            }
        }
        missed = spw_callsite_symbols_sort(missing, missed);
        spw_callsite_symbols_name(missing, missed);
        for (size_t i = 0; i < missed; i++) {
            learn(&missing[i]);
        }
        for (size_t i = 0; i < count; i++) {
            ret_names[i] = find(spw_callsite_call(addresses[i]))->name;
        }
    }
    pthread_mutex_unlock(&known.lock);
}

void spw_callsite_names_lock(void)
{
    pthread_mutex_lock(&known.lock);
}

void spw_callsite_names_unlock(void)
{
    pthread_mutex_unlock(&known.lock);
}
