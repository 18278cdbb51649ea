#include "cli/usage/usage_file.h"

#include "cli/console/json.h"
#include "cli/console/messages.h"
#include "cli/recording/blocks.h"
#include "cli/usage/sites_file.h"
#include "cli/usage/usage_recording.h"

#include <stdlib.h>

static bool add_entry(struct spw_cli_usage *usage, const struct spw_cli_sites_entry *entry)
{
    static const struct spw_callsite_facts nobody = {.rank = -1};
    const struct spw_cli_line figures = {
        .at_peak = entry->device_peak_bytes, .peak = entry->peak_bytes, .allocs = entry->allocs};
    bool known = entry->id != 0 && entry->rest == 0;

    if (entry->device < 0 || entry->device >= usage->device_count) {
        return true;
    }
    return spw_cli_usage_add(&usage->devices[entry->device], known ? &entry->facts : &nobody,
                             entry->api,
                             known             ? NULL
                             : entry->rest > 0 ? "other call sites"
                                               : "not known",
                             &figures);
}

static bool take_stats(const struct spw_cli_sites_file *file, struct spw_cli_usage *usage)
{
    const cJSON *devices = spw_cli_json_list(file->json, "devices"), *figures;

    if (cJSON_IsNumber(cJSON_GetObjectItem(file->json, "rank"))) {
        usage->rank = (int64_t)spw_cli_json_number(file->json, "rank");
    }
    usage->device_count = cJSON_GetArraySize(devices);
    usage->has_sites = file->entries != NULL;
    usage->devices = calloc((size_t)usage->device_count + 1, sizeof(*usage->devices));
    if (usage->devices == NULL) {
        return false;
    }
    for (int i = 0; i < usage->device_count; i++) {
        struct spw_cli_device_usage *device = &usage->devices[i];

        figures = cJSON_GetArrayItem(devices, i);
        device->peak = spw_cli_json_number(figures, "live_peak_bytes");
        device->spilled = spw_cli_json_number(figures, "spilled_bytes");
        device->host_peak = spw_cli_json_number(figures, "host_peak_bytes");
        device->used = device->peak > 0;
    }
    for (size_t i = 0; i < file->count; i++) {
        if (!add_entry(usage, &file->entries[i])) {
            return false;
        }
    }
    return true;
}

static bool load_stats(const char *command, const char *path, struct spw_cli_usage *ret_usage)
{
    struct spw_cli_sites_file file;
    bool taken;

    if (!spw_cli_sites_file_load(command, path, /* need_sites */ false, &file)) {
        return false;
    }
    taken = take_stats(&file, ret_usage);
    spw_cli_sites_file_free(&file);
    if (!taken) {
        spw_cli_complain(command, "%s: not enough memory", path);
        spw_cli_usage_free(ret_usage);
    }
    return taken;
}

bool spw_cli_usage_load(const char *command, const char *path, struct spw_cli_usage *ret_usage)
{
    *ret_usage = (struct spw_cli_usage){.path = path, .rank = -1};
    if (spw_cli_blocks_recognise(path)) {
        ret_usage->is_recording = true;
        return spw_cli_usage_of_recording(command, path, ret_usage);
    }
    return load_stats(command, path, ret_usage);
}
