#include "backend/host.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>

#include "driver/host_place.h"
#include "driver/host_verdict.h"
#include "system/log.h"
#include "system/room.h"
#include "system/start.h"
#include "system/uncancelled.h"

enum { TEXT = 64 };

static int attribute(struct spw_driver *driver, int ordinal, CUdevice device,
                     CUdevice_attribute name, int unknown)
{
    int value;

    return SPW_DRIVER_CALL(driver, ordinal, cuDeviceGetAttribute, &value, name, device) ==
                   CUDA_SUCCESS
               ? value
               : unknown;
}

static void tell(void *context, CUmemLocation place, enum spw_host_answer answer, const char *said)
{
    char text[TEXT];

    spw_log(SPW_LOG_INFO, "device %d: chunks at %s: %s", *(const int *)context,
            spw_driver_host_text(place, text, sizeof(text)), said);
    (void)answer;
}

/* Names the device by its place on the PCI bus, which does not depend on the visible devices. */
static void make_key(struct spw_driver *driver, int ordinal, CUdevice device,
                     char ret_key[SPW_VERDICT_KEY])
{
    char name[TEXT];
    int version = 0;

    (void)SPW_DRIVER_CALL(driver, ordinal, cuDriverGetVersion, &version);
    (void)snprintf(name, sizeof(name), "%x:%x:%x",
                   attribute(driver, ordinal, device, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0),
                   attribute(driver, ordinal, device, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0),
                   attribute(driver, ordinal, device, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0));
    spw_driver_host_verdict_key(name, version, ret_key);
}

/* Reports that the spillway command, which tries places, is missing. This is the reason behind the
 * message about page-locked memory. */
static void tell_missing(int ordinal, const char *folder)
{
    if (folder != NULL) {
        spw_log_always("device %d: the command spillway is not beside %s/libspillway.so: it "
                       "tests where the driver can map host memory",
                       ordinal, folder);
    } else {
        spw_log_always(
            "device %d: the folder of libspillway.so is not known, so the command spillway "
            "cannot be found: it tests where the driver can map host memory",
            ordinal);
    }
}

bool spw_backend_host_seek(struct spw_driver *driver, int ordinal, CUdevice device,
                           CUmemLocation *ret_place)
{
    SPW_UNCANCELLED;
    char SPW_ROOM *own = spw_room_take(3 * PATH_MAX);
    char *command = own + PATH_MAX, *library = own + 2 * PATH_MAX;
    const char *folder = own == NULL ? NULL : spw_start_own_folder(own);
    char key[SPW_VERDICT_KEY];
    struct spw_host_question question = {
        .command = own == NULL ? NULL : spw_driver_host_command(folder, command, PATH_MAX),
        .library =
            own != NULL && spw_start_object((const void *)(uintptr_t)driver->own_init, library)
                ? library
                : "libcuda.so.1",
        .ordinal = ordinal,
        .own_node = attribute(driver, ordinal, device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, -1),
        .nodes = attribute(driver, ordinal, device,
                           CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1),
        .plain = attribute(driver, ordinal, device,
                           CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1),
        .simulated = driver->simulated != NULL,
        .tell = tell,
        .context = &ordinal,
    };
    bool works, certain;

    make_key(driver, ordinal, device, key);
    if (spw_driver_host_verdict_read(question.simulated, key, &works, ret_place)) {
        spw_log(SPW_LOG_INFO, "device %d: chunks of host memory: an earlier process found %s",
                ordinal, works ? "a place" : "none");
        return works;
    }
    if (question.command == NULL) {
        tell_missing(ordinal, folder);
    }
    works = spw_driver_host_place_find(&question, ret_place, &certain);
    if (certain) {
        spw_driver_host_verdict_write(question.simulated, key, works, *ret_place);
    }
    return works;
}
