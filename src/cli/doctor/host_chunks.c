#include "cli/doctor/host_chunks.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/console/messages.h"
#include "cli/doctor/tables.h"
#include "cli/launch/installation.h"
#include "common/bounds.h"
#include "driver/host_place.h"
#include "system/start.h"

/* ---- the search for a place ---- */

static void add(void *context, CUmemLocation place, enum spw_host_answer answer, const char *said)
{
    struct spw_cli_host_chunks *found = context;
    size_t used = strlen(found->verdict);
    char text[64];

    snprintf(found->verdict + used, sizeof(found->verdict) - used, "%s%s: %s", used > 0 ? "; " : "",
             spw_driver_host_text(place, text, sizeof(text)), said);
    (void)answer;
}

static void seek(const struct spw_cli_cuda *cuda, CUdevice device,
                 struct spw_cli_host_chunks *found)
{
    char self[PATH_MAX];
    struct link_map *map = NULL;
    CUmemLocation place = {.type = CU_MEM_LOCATION_TYPE_INVALID};
    bool certain;
    struct spw_host_question question = {
        .command = spw_cli_installation_self(self) ? self : NULL,
        .ordinal = device,
        .own_node = spw_cli_cuda_attribute(cuda, device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID),
        .nodes = spw_cli_cuda_attribute(
                     cuda, device,
                     CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0,
        .plain =
            spw_cli_cuda_attribute(
                cuda, device, CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0,
        .simulated = cuda->simulated,
        .tell = add,
        .context = found,
    };

    dlinfo(cuda->library, RTLD_DI_LINKMAP, &map);
    question.library = map != NULL ? map->l_name : "libcuda.so.1";
    spw_start_keep_environment();
    found->work = spw_driver_host_place_find(&question, &place, &certain);
    found->place = (struct spw_cli_place){.type = place.type, .id = place.id};
    if (found->verdict[0] == '\0') {
        snprintf(found->verdict, sizeof(found->verdict), "no: the driver says that it cannot");
    }
}

const struct spw_cli_host_chunks *spw_cli_host_chunks_find(const struct spw_cli_cuda *cuda,
                                                           CUdevice device)
{
    static struct spw_cli_host_chunks known[SPW_DEVICES_MAX], none = {.verdict = "not tried"};
    struct spw_cli_host_chunks *found = &none;

    if (device >= 0 && device < SPW_DEVICES_MAX) {
        found = &known[device];
        if (!found->sought) {
            found->sought = true;
            seek(cuda, device, found);
        }
    }
    return found;
}

/* ---- the child ---- */

enum { ORPHAN_SECONDS = 30 };

static int report(enum spw_host_answer answer, const char *text)
{
    puts(text);
    fflush(stdout);
    _exit((int)answer);
}

/* Creates a chunk without a context, because a full device has no room for a context. *ret_result
 * is the driver's result. Returns false if the driver requires a context. */
static bool make_without_context(const struct spw_cli_cuda *cuda, struct spw_cli_place place,
                                 CUresult *ret_result)
{
    CUmemAllocationProp properties = spw_cli_place_properties(place);
    size_t granule = spw_cli_place_granule(cuda, place);
    CUmemGenericAllocationHandle chunk;

    *ret_result = granule == 0 ? CUDA_ERROR_NOT_SUPPORTED
                               : cuda->cuMemCreate(&chunk, granule, &properties, 0);
    if (*ret_result == CUDA_SUCCESS) {
        cuda->cuMemRelease(chunk);
    }
    return *ret_result != CUDA_ERROR_INVALID_CONTEXT && *ret_result != CUDA_ERROR_NOT_INITIALIZED;
}

static int try_place(const struct spw_cli_cuda *cuda, CUdevice device, struct spw_cli_place place)
{
    char verdict[SPW_CLI_REPORT_CELL];
    CUresult made;
    bool known = make_without_context(cuda, place, &made);
    CUcontext context;

    if (known && made != CUDA_SUCCESS) {
        snprintf(verdict, sizeof(verdict), "no: cuMemCreate: %s", spw_cli_cuda_error(cuda, made));
        return report(SPW_HOST_REFUSED, verdict);
    }
    if (cuda->cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS ||
        cuda->cuCtxSetCurrent(context) != CUDA_SUCCESS) {
        return known ? report(SPW_HOST_MADE, "made, but there is no context to use them in")
                     : report(SPW_HOST_UNTRIED, "the device has no context");
    }
    if (!spw_cli_doctor_probe(cuda, device, place, verdict, sizeof(verdict))) {
        return report(SPW_HOST_REFUSED, verdict);
    }
    return report(SPW_HOST_WORKS, "work");
}

int spw_cli_host_chunks_child(int argc, char **argv)
{
    char reason[SPW_CLI_REPORT_CELL];
    struct spw_cli_cuda cuda;
    CUdevice device;

    if (argc != 5) {
        spw_cli_complain(argv[0], "only spillway itself uses this command");
        return SPW_CLI_EXIT_USAGE;
    }
    (void)syscall(__NR_close_range, 3, UINT_MAX, 0); /* descriptors of the program */
    alarm(ORPHAN_SECONDS);
    if (!spw_cli_cuda_load_file(argv[1], &cuda, reason, sizeof(reason)) ||
        spw_cli_cuda_start(&cuda, reason, sizeof(reason)) != CUDA_SUCCESS) {
        return report(SPW_HOST_UNTRIED, reason);
    }
    if (cuda.cuDeviceGet(&device, atoi(argv[2])) != CUDA_SUCCESS) {
        return report(SPW_HOST_UNTRIED, "the device is not visible");
    }
    return try_place(
        &cuda, device,
        (struct spw_cli_place){.type = (CUmemLocationType)atoi(argv[3]), .id = atoi(argv[4])});
}
