#include "device/limits.h"

#include <string.h>

#include "common/minmax.h"
#include "common/options.h"
#include "common/size.h"
#include "device/host_budget.h"
#include "system/log.h"

/* Returns `bytes` without the room that is left for memory outside of the pool. */
static uint64_t beside_room(uint64_t bytes)
{
    uint64_t room = spw_max(bytes / 50, UINT64_C(512) << 20);

    return bytes > room ? bytes - room : bytes;
}

/* Returns what device and host may take together of their one memory. */
static uint64_t of_one_memory(const struct spw_device *device)
{
    const struct spw_one_memory *one = &device->one_memory;
    struct spw_host_memory memory;
    uint64_t most = one->total_bytes - one->reserve_bytes;

    spw_device_host_memory(&memory);
    return memory.limited ? spw_min(most, memory.group_limit) : most;
}

/* Returns the size as the user wrote it. The launcher writes a number of bytes; such a number gets
 * a unit. */
static const char *text_of(enum spw_option number, const struct spw_option_value *option,
                           char text[SPW_SIZE_TEXT])
{
    const char *given = spw_option_environment(spw_option_row(number)->name);

    return given[strspn(given, "0123456789")] == '\0' ? spw_size_text(option->bytes, text) : given;
}

uint64_t spw_device_limit(const struct spw_driver *driver, const struct spw_device *device,
                          uint64_t total, uint64_t free)
{
    const uint64_t bit = UINT64_C(1) << device->ordinal;
    struct spw_option_value option = spw_option_get(SPW_OPT_SPILLWAY_LIMIT, NULL, 0);
    /* The memory that other processes hold does not reduce the limit of a process with a share of
     * the device. */
    bool shared = spw_option_get(SPW_OPT_SPILLWAY_SHARE, NULL, 0).set;
    uint64_t most = device->one_memory.is_one   ? of_one_memory(device)
                    : driver->simulated != NULL ? total
                                                : beside_room(shared ? total : free);
    uint64_t limit = spw_option_bytes(&option, total);
    char asked[SPW_SIZE_TEXT], taken[SPW_SIZE_TEXT];

    if (!option.set) {
        return most;
    }
    if (limit > total && (spw_devices.limit_reported & bit) == 0) {
        spw_devices.limit_reported |= bit;
        spw_log_always("SPILLWAY_LIMIT=%s is more than device %d has; the limit is %s",
                       text_of(SPW_OPT_SPILLWAY_LIMIT, &option, asked), device->ordinal,
                       spw_size_text(most, taken));
    }
    return spw_min(limit, most);
}

static bool may_spill(void)
{
    return spw_option_get(SPW_OPT_SPILLWAY_SPILL, NULL, 0).word != SPW_SPILL_OFF &&
           spw_process_settings()->mode != SPW_MODE_OBSERVE;
}

/* Reports once that the host limit is lower than the user asked for. */
static void tell_host_limit(const struct spw_host_memory *memory,
                            const struct spw_option_value *option, uint64_t limit, bool simulated)
{
    uint64_t most = memory->limited ? memory->group_limit : memory->total;
    char asked[SPW_SIZE_TEXT], there[SPW_SIZE_TEXT], taken[SPW_SIZE_TEXT];

    if (!atomic_flag_test_and_set(&spw_devices.host_limit_reported)) {
        spw_log_always("SPILLWAY_HOST_LIMIT=%s is more than the %s that %s; the limit is %s",
                       text_of(SPW_OPT_SPILLWAY_HOST_LIMIT, option, asked),
                       spw_size_text(most, there),
                       simulated         ? "the simulated machine has"
                       : memory->limited ? "the control group allows"
                                         : "this machine has",
                       spw_size_text(limit, taken));
    }
}

struct spw_host_limit spw_device_host_limit(const struct spw_driver *driver,
                                            const struct spw_device *device)
{
    struct spw_option_value option = spw_option_get(SPW_OPT_SPILLWAY_HOST_LIMIT, NULL, 0);
    struct spw_host_memory memory;
    struct spw_host_limit share, asked = {.bound = SPW_HOST_BOUND_OPTION};
    uint64_t most;

    if (!may_spill() || device->one_memory.is_one) {
        return (struct spw_host_limit){0};
    }
    spw_device_host_memory(&memory);
    share.bytes = spw_device_host_share(&memory);
    share.bound = spw_driver_host_memory_bound(&memory);
    if (!option.set) {
        return share;
    }
    most = memory.limited && memory.group_limit < memory.total ? memory.group_limit : memory.total;
    asked.bytes = spw_option_bytes(&option, memory.total);
    if (most > 0 && asked.bytes > most) {
        tell_host_limit(&memory, &option, share.bytes, driver->simulated != NULL);
        return share;
    }
    return asked;
}
