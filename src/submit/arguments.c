#include "submit/arguments.h"

#include "common/hash.h"
#include "device/lease.h"
#include "device/lookup.h"
#include "device/spill.h"
#include "migrate/move/barrier.h"
#include "submit/indirect.h"
#include "submit/kernel_name.h"
#include "submit/state.h"
#include "submit/tensor_map.h"
#include "system/demangle.h"
#include "system/lock.h"

#include <string.h>

enum {
    TRIES = 16, /* entries looked at in the table */
    MOST_PARAMS = 1024
};

static size_t place_of(uintptr_t function, uint32_t generation)
{
    return (size_t)(spw_hash_word(function ^ (uint64_t)generation << 48) >> 50);
}

/* Enters the sizes of the parameters of a function, or of a kernel that belongs to no context yet
 * (`kernel`). Returns the driver's answer to the question after the last parameter. */
static CUresult enter_sizes(struct spw_layout *layout, CUfunction function, bool kernel)
{
    struct spw_driver *driver = spw_process_driver();
    size_t offset, bytes;
    CUresult result = CUDA_SUCCESS;

    layout->first = spw_submit.layouts.used;
    layout->count = 0;
    while (layout->count < MOST_PARAMS && spw_submit.layouts.used < SPW_LAYOUT_SIZES) {
        result = kernel ? SPW_DRIVER_CALL(driver, -1, cuKernelGetParamInfo, (CUkernel)function,
                                          layout->count, &offset, &bytes)
                        : SPW_DRIVER_CALL(driver, -1, cuFuncGetParamInfo, function, layout->count,
                                          &offset, &bytes);
        if (result != CUDA_SUCCESS || bytes > UINT16_MAX) {
            break;
        }
        spw_submit.layouts.sizes[spw_submit.layouts.used++] = (uint16_t)bytes;
        layout->count++;
    }
    return result;
}

static bool has_direct_name(CUfunction function, bool kernel)
{
    struct spw_driver *driver = spw_process_driver();
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    const char *name = NULL;

    if (kernel && driver->cuKernelGetName != NULL) {
        result = SPW_DRIVER_CALL(driver, -1, cuKernelGetName, &name, (CUkernel)function);
    } else if (!kernel && driver->cuFuncGetName != NULL) {
        result = SPW_DRIVER_CALL(driver, -1, cuFuncGetName, &name, function);
    }
    return result == CUDA_SUCCESS && name != NULL && !spw_submit_kernel_name_may_be_indirect(name);
}

/* Asks the driver for a layout. The lock is held. False if the driver had no memory to load the
 * kernel's code. It needs the code for the answer.
 *
 * cuda.h defines each of the two functions only for its own kind of handle. So
 * cuKernelGetParamInfo is called only after the driver has refused the handle as no CUfunction.
 * INVALID_VALUE for the first parameter is the answer for a function without parameters. */
static bool learn(struct spw_layout *layout, CUfunction function)
{
    const struct spw_driver *driver = spw_process_driver();
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    bool kernel = false;

    if (driver->cuFuncGetParamInfo != NULL) {
        result = enter_sizes(layout, function, /* kernel */ false);
    }
    if (result == CUDA_ERROR_INVALID_HANDLE && layout->count == 0 &&
        driver->cuKernelGetParamInfo != NULL) {
        result = enter_sizes(layout, function, /* kernel */ true);
        kernel = layout->count > 0;
    }
    /* The driver gives this answer after the last parameter, and also for a bad handle. A kernel
     * without parameters reaches only the globals of its module, whose content is unknown. */
    layout->known = layout->count > 0 && result == CUDA_ERROR_INVALID_VALUE;
    layout->direct = layout->known && has_direct_name(function, kernel);
    return result != CUDA_ERROR_OUT_OF_MEMORY;
}

/* Fills a free entry, unless another thread was faster. The entry stays free when the driver is to
 * be asked again at the next launch. */
static void enter(struct spw_layout *layout, CUfunction function, uint32_t generation)
{
    /* Not under the lock, since this may load a library. */
    (void)spw_demangle_find(/* load */ true);
    spw_lock(&spw_locks.layouts);
    if (atomic_load(&layout->function) == 0) {
        layout->generation = generation;
        if (learn(layout, function)) {
            atomic_store_explicit(&layout->function, (uintptr_t)function, memory_order_release);
        }
    }
    spw_unlock(&spw_locks.layouts);
}

/* The layout of a function; NULL: the driver gave no answer yet, or the table is full. */
static struct spw_layout *find(CUfunction function)
{
    uint32_t generation =
        atomic_load_explicit(&spw_submit.layouts.generation, memory_order_acquire);
    size_t at = place_of((uintptr_t)function, generation);

    for (size_t i = 0; i < TRIES; i++) {
        struct spw_layout *layout = &spw_submit.layouts.layouts[(at + i) % SPW_LAYOUTS];
        uintptr_t entered = atomic_load_explicit(&layout->function, memory_order_acquire);

        if (entered == 0) {
            enter(layout, function, generation);
            entered = atomic_load_explicit(&layout->function, memory_order_acquire);
        }
        if (entered == 0) {
            return NULL;
        }
        if (entered == (uintptr_t)function && layout->generation == generation) {
            return layout;
        }
    }
    return NULL;
}

void spw_submit_arguments_forget_layouts(void)
{
    atomic_fetch_add(&spw_submit.layouts.generation, 1);
}

/* Enters an address of ours. */
static void enter_address(struct spw_arguments *use, uint64_t address)
{
    for (size_t i = 0; i < use->count; i++) {
        if (use->addresses[i] == address) {
            return;
        }
    }
    if (use->count == SPW_USE_ADDRESSES) {
        use->known = false;
        return;
    }
    use->addresses[use->count++] = address;
}

void spw_submit_arguments_add(struct spw_arguments *use, uint64_t word)
{
    struct spw_pool *pool;

    if (spw_device_owner(word, &pool) != NULL) {
        enter_address(use, word);
    }
}

/* Adds a kernel's argument. Memory that holds addresses may lead the kernel to other memory. */
static void follow(struct spw_arguments *use, uint64_t word)
{
    struct spw_pool *pool;
    bool ours = spw_device_owner(word, &pool) != NULL;

    if (ours) {
        enter_address(use, word);
    }
    if (SPW_UNLIKELY(spw_submit_indirect_at(word, ours))) {
        use->known = false;
    }
}

/* Adds every possible address in one parameter, or in a buffer of all parameters: plain words and
 * tensor maps. */
static void look_through(struct spw_arguments *use, const unsigned char *param, size_t bytes)
{
    for (size_t at = 0; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
        uint64_t word;

        memcpy(&word, param + at, sizeof(word));
        follow(use, word);
    }
    for (size_t at = 0; spw_submit_tensor_map_any() && at + SPW_TENSOR_MAP_BYTES <= bytes;
         at += SPW_TENSOR_MAP_ALIGN) {
        follow(use, spw_submit_tensor_map_find(param + at));
    }
}

/* Finds the buffer that holds all parameters. False when there is none. */
static bool find_buffer(void **extra, const void **ret_buffer, size_t *ret_bytes)
{
    *ret_buffer = NULL;
    *ret_bytes = 0;
    for (size_t i = 0; extra != NULL && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            *ret_buffer = extra[i + 1];
        } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[i + 1] != NULL) {
            *ret_bytes = *(const size_t *)extra[i + 1];
        } else {
            return false;
        }
    }
    return *ret_buffer != NULL;
}

/* Adds the addresses in a kernel's parameters. False when these cannot be read. */
static bool read_parameters(struct spw_arguments *use, const struct spw_layout *layout,
                            void **params, void **extra)
{
    const void *buffer;
    size_t bytes;

    use->count = 0;
    if (params != NULL && layout != NULL && layout->known) {
        for (uint32_t i = 0; i < layout->count; i++) {
            look_through(use, params[i], spw_submit.layouts.sizes[layout->first + i]);
        }
        return true;
    }
    if (params == NULL && find_buffer(extra, &buffer, &bytes)) {
        look_through(use, buffer, bytes);
        return true;
    }
    return false;
}

/* True when, by its name, a kernel uses no memory that its parameters do not name. */
static bool names_all(const struct spw_layout *layout)
{
    return layout != NULL && layout->direct && !spw_submit_indirect_everywhere();
}

bool spw_submit_arguments_read(struct spw_arguments *ret_use, CUfunction function, void **params,
                               void **extra)
{
    struct spw_layout *layout = find(function);

    ret_use->known = names_all(layout);
    ret_use->kernel = true;
    return read_parameters(ret_use, layout, params, extra) && ret_use->count < SPW_USE_ADDRESSES;
}

void spw_submit_arguments_launch(struct spw_arguments *ret_use, CUfunction function, void **params,
                                 void **extra)
{
    struct spw_layout *layout = find(function);

    ret_use->known = names_all(layout);
    ret_use->kernel = true;
    if (!read_parameters(ret_use, layout, params, extra)) {
        ret_use->known = false;
    }
}

void spw_submit_arguments_note(const struct spw_arguments *use)
{
    const struct spw_use noted = {.known = use->known,
                                  .kernel = use->kernel,
                                  .count = use->count,
                                  .addresses = use->addresses};

    spw_submit_use_note(&noted);
}

void spw_submit_arguments_note_unknown(void)
{
    const struct spw_use anything = {.known = false};

    spw_device_lease_enter();
    spw_submit_use_note(&anything);
    spw_device_lease_leave();
}
