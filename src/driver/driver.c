#include "driver/driver.h"

#include "common/hash.h"
#include "driver/dl.h"

#include <assert.h>
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static_assert((SPW_DRIVER_SLOTS & (SPW_DRIVER_SLOTS - 1)) == 0, "the hash takes low bits");
static_assert(SPW_FN_COUNT * 6 <= SPW_DRIVER_SLOTS, "three addresses per row, half full at most");

#define LIBRARY "libcuda.so.1"

/* A function of struct spw_driver: its names, and the offset of its pointer. */
struct row {
    const char *symbol;
    const char *base; /* NULL: cuGetProcAddress does not look it up */
    int since;
    int flags;
    size_t offset;
};

#define NO_POINTER SIZE_MAX

static const struct row rows[SPW_FN_COUNT] = {
#define SPW_FN(symbol, base, since, flags, ...)                                                    \
    {#symbol, #base, since, flags, offsetof(struct spw_driver, symbol)},
#define SPW_EACH(symbol) {#symbol, NULL, 0, 0, NO_POINTER},
#include "driver/functions.def"
};

static const struct row calls[SPW_CALL_COUNT] = {
#define SPW_CALL(symbol)        {#symbol, NULL, 0, 0, offsetof(struct spw_driver, symbol)},
#define SPW_CALL_HOOKED(symbol) {#symbol, NULL, 0, 0, NO_POINTER},
#include "driver/calls.def"
};

/* Called if there is no driver, or if it lacks the function. */
#define SPW_FN(symbol, base, since, flags, answer, retry, barrier, memory, params)                 \
    static CUresult CUDAAPI absent_##symbol params                                                 \
    {                                                                                              \
        return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;                                          \
    }
#include "driver/functions.def"

static struct spw_driver absent = {
#define SPW_FN(symbol, ...) .symbol = absent_##symbol,
#include "driver/functions.def"
};

_Thread_local struct spw_driver_scope spw_driver_scope __attribute__((tls_model("initial-exec")));

static size_t slot_of(const void *address)
{
    return (size_t)(spw_hash_word((uintptr_t)address) >> 32) & (SPW_DRIVER_SLOTS - 1);
}

/* Enters the address of a row's function into the hash table. A known address stays with its first
 * row: two names for one address are one function. */
static void learn(struct spw_driver *driver, const void *address, enum spw_fn fn)
{
    size_t slot = slot_of(address);

    while (driver->slots[slot].address != NULL && driver->slots[slot].address != address) {
        slot = (slot + 1) & (SPW_DRIVER_SLOTS - 1);
    }
    if (driver->slots[slot].address == NULL) {
        driver->slots[slot].address = address;
        driver->slots[slot].fn = fn;
    }
}

enum spw_fn spw_driver_find(const struct spw_driver *driver, const void *address)
{
    size_t slot = slot_of(address);

    while (driver->slots[slot].address != NULL) {
        if (driver->slots[slot].address == address) {
            return driver->slots[slot].fn;
        }
        slot = (slot + 1) & (SPW_DRIVER_SLOTS - 1);
    }
    return SPW_FN_COUNT;
}

static void set_pointer(struct spw_driver *driver, const struct row *row, const void *address)
{
    memcpy((char *)driver + row->offset, &address, sizeof(address));
}

/* Takes the functions that the library exports, as -lcuda and dlsym find them. Records their
 * addresses. The pointers are those that a program without spillway would get. */
static void take_exports(struct spw_driver *driver, void *library, bool *ret_found)
{
    const void *address;

    for (size_t i = 0; i < SPW_FN_COUNT; i++) {
        address = rows[i].base == NULL ? NULL : spw_driver_dl_symbol(library, rows[i].symbol);
        ret_found[i] = address != NULL;
        if (address != NULL) {
            learn(driver, address, (enum spw_fn)i);
            address = spw_driver_dl_symbol_behind(library, rows[i].symbol);
            learn(driver, address, (enum spw_fn)i);
            set_pointer(driver, &rows[i], address);
        }
    }
    for (size_t i = 0; i < SPW_CALL_COUNT; i++) {
        if (calls[i].offset != NO_POINTER) {
            set_pointer(driver, &calls[i], spw_driver_dl_symbol_behind(library, calls[i].symbol));
        }
    }
    address = spw_driver_dl_symbol(library, "cuInit");
    memcpy(&driver->own_init, &address, sizeof(address));
    address = spw_driver_dl_symbol(library, "cuGetProcAddress_v2");
    memcpy(&driver->own_resolver, &address, sizeof(address));
    address = spw_driver_dl_symbol(library, "spillway_sim_version");
    memcpy(&driver->simulated, &address, sizeof(address));
    address = spw_driver_dl_symbol(library, "spillway_sim_payload");
    memcpy(&driver->simulated_payload, &address, sizeof(address));
    address = spw_driver_dl_symbol(library, "spillway_sim_blocks");
    memcpy(&driver->simulated_blocks, &address, sizeof(address));
    address = spw_driver_dl_symbol(library, "spillway_sim_one_memory");
    memcpy(&driver->simulated_one_memory, &address, sizeof(address));
}

/* Uses the clock of a simulated driver that simulates time. */
static void take_clock(void *library)
{
    const void *asked = spw_driver_dl_symbol(library, "spillway_sim_has_time");
    const void *clock = spw_driver_dl_symbol(library, "spillway_sim_time");
    spw_clock_source *source;
    int (*has_time)(void);

    memcpy(&has_time, &asked, sizeof(has_time));
    memcpy(&source, &clock, sizeof(source));
    if (has_time != NULL && source != NULL && has_time() != 0) {
        atomic_store(&spw_clock_simulated, source);
    }
}

/* Takes the functions that cuGetProcAddress returns, since their addresses may differ from the
 * exported ones. Called after take_exports: for a per-thread-stream variant that the driver lacks,
 * cuGetProcAddress returns the plain function, which must already be known. */
static void take_resolved(struct spw_driver *driver, const bool *found)
{
    if (driver->own_resolver == NULL) {
        return;
    }
    for (size_t i = 0; i < SPW_FN_COUNT; i++) {
        const struct row *row = &rows[i];
        void *address = NULL;
        CUdriverProcAddressQueryResult status;

        if (row->base == NULL ||
            driver->own_resolver(row->base, &address, row->since, (cuuint64_t)row->flags,
                                 &status) != CUDA_SUCCESS ||
            address == NULL) {
            continue;
        }
        if (!found[i] && spw_driver_find(driver, address) == SPW_FN_COUNT) {
            set_pointer(driver, row, address);
        }
        learn(driver, address, (enum spw_fn)i);
    }
}

struct spw_driver *spw_driver_open(bool load)
{
    bool found[SPW_FN_COUNT];
    struct spw_driver *driver;
    void *library = spw_driver_scope.opens ? NULL : dlopen(LIBRARY, RTLD_LAZY | RTLD_NOLOAD);

    if (library == NULL && load && !spw_driver_scope.opens) {
        library = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);
    }
    if (library == NULL) {
        return NULL;
    }
    driver = malloc(sizeof(*driver));
    if (driver == NULL) {
        return NULL;
    }
    *driver = absent;
    spw_driver_scope.opens = true;
    spw_driver_scope.depth++;
    take_exports(driver, library, found);
    take_resolved(driver, found);
    take_clock(library);
    spw_driver_scope.depth--;
    spw_driver_scope.opens = false;
    return driver;
}

const void *spw_driver_own(const struct spw_driver *driver, const char *base, int version,
                           cuuint64_t flags, const void *found)
{
    CUdriverProcAddressQueryResult status;
    void *own = NULL;

    if (spw_driver_dl_behind() != NULL && driver->own_resolver != NULL &&
        driver->own_resolver(base, &own, version, flags, &status) == CUDA_SUCCESS && own != NULL &&
        spw_driver_find(driver, own) != SPW_FN_COUNT) {
        return own;
    }
    return found;
}

void spw_driver_discard(struct spw_driver *driver)
{
    free(driver);
}

struct spw_driver *spw_driver_absent(void)
{
    return &absent;
}

const char *spw_driver_symbol(enum spw_fn fn)
{
    return rows[fn].symbol;
}

enum spw_fn spw_driver_row(const char *symbol)
{
    size_t i = 0;

    while (i < SPW_FN_COUNT && strcmp(rows[i].symbol, symbol) != 0) {
        i++;
    }
    return (enum spw_fn)i;
}

bool spw_driver_knows(const char *base)
{
    for (size_t i = 0; i < SPW_FN_COUNT; i++) {
        if (rows[i].base != NULL && strcmp(rows[i].base, base) == 0) {
            return true;
        }
    }
    return false;
}

const char *spw_driver_call_name(enum spw_own_call call)
{
    return calls[call].symbol;
}

/* Exchanges the thread's capture mode with *mode. Tries again after a failure, since in the wrong
 * mode spillway's calls would break a capture of the program. */
static bool exchange_mode(struct spw_driver *driver, int ordinal, CUstreamCaptureMode *mode)
{
    enum { TRIES = 2 };
    bool done = false;

    for (int i = 0; i < TRIES && !done; i++) {
        spw_driver_count(driver, ordinal, SPW_CALL_cuThreadExchangeStreamCaptureMode);
        done = driver->cuThreadExchangeStreamCaptureMode(mode) == CUDA_SUCCESS;
    }
    return done;
}

void spw_driver_relax(struct spw_driver *driver, int ordinal)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    if (driver->cuThreadExchangeStreamCaptureMode != NULL &&
        exchange_mode(driver, ordinal, &mode)) {
        spw_driver_scope.mode = mode;
        spw_driver_scope.relaxed = true;
    }
}

void spw_driver_restore(struct spw_driver *driver, int ordinal)
{
    CUstreamCaptureMode mode = spw_driver_scope.mode;

    (void)exchange_mode(driver, ordinal, &mode);
    spw_driver_scope.relaxed = false;
}
