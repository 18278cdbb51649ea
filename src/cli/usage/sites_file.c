#include "cli/usage/sites_file.h"

#include "cli/console/json.h"
#include "cli/console/messages.h"
#include "cli/inspect/symbols.h"
#include "cli/recording/blocks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the file ---- */

/* Returns the reason why a file is not a statistics file, or NULL if it is one. */
static const char *error_of(const cJSON *json)
{
    const cJSON *schema = cJSON_GetObjectItemCaseSensitive(json, "schema");
    const cJSON *sites = cJSON_GetObjectItemCaseSensitive(json, "sites");
    const cJSON *pinned = cJSON_GetObjectItemCaseSensitive(json, "pinned_sites");

    return json == NULL              ? "it is not valid JSON, or it is truncated"
           : !cJSON_IsObject(json)   ? "it is not an object"
           : !cJSON_IsNumber(schema) ? "\"schema\" is missing"
           : schema->valueint != 1   ? "\"schema\" is not 1"
           : !cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(json, "devices"))
               ? "\"devices\" is not a list"
           : sites != NULL && !cJSON_IsArray(sites)   ? "\"sites\" is not a list"
           : pinned != NULL && !cJSON_IsArray(pinned) ? "\"pinned_sites\" is not a list"
                                                      : NULL;
}

/* `alone` is true if the command accepts only statistics files, and no recordings. */
static cJSON *read_json(const char *command, const char *path, bool alone)
{
    const char *wrong;
    cJSON *json;

    if (alone && spw_cli_blocks_recognise(path)) {
        spw_cli_complain(command,
                         "%s: this is a recording, and no statistics file (spillway report %s "
                         "shows it)",
                         path, path);
        return NULL;
    }
    if (!spw_cli_json_read(path, &json)) {
        spw_cli_complain(command, "%s: %s", path, strerror(errno));
        return NULL;
    }
    wrong = error_of(json);
    if (wrong != NULL) {
        cJSON_Delete(json);
        spw_cli_complain(command,
                         alone ? "%s: not a statistics file: %s (spillway run --stats FILE writes "
                                 "one)"
                               : "%s: neither a recording nor a statistics file: %s (spillway run "
                                 "--record FILE or --stats FILE writes one)",
                         path, wrong);
        return NULL;
    }
    return json;
}

static size_t length_of(const cJSON *array)
{
    return array == NULL ? 0 : (size_t)cJSON_GetArraySize(array);
}

/* ---- frames ---- */

static void load_python(struct spw_cli_sites_entry *entry)
{
    const cJSON *frames = spw_cli_json_list(entry->json, "python"), *frame;
    size_t count = length_of(frames);

    entry->python = calloc(count + 1, sizeof(entry->python[0]));
    if (entry->python == NULL) {
        return;
    }
    cJSON_ArrayForEach(frame, frames)
    {
        entry->python[entry->facts.python_count++] = (struct spw_python_frame){
            spw_cli_json_text(frame, "file"), spw_cli_json_text(frame, "function"),
            (uint32_t)spw_cli_json_number(frame, "line")};
    }
    entry->facts.python = entry->python;
}

static const char *build_of(const cJSON *file, const char *library)
{
    const cJSON *module;

    cJSON_ArrayForEach(module, spw_cli_json_list(file, "modules"))
    {
        const char *path = spw_cli_json_text(module, "path");

        if (path != NULL && strcmp(path, library) == 0) {
            const char *id = spw_cli_json_text(module, "build_id");

            return id != NULL ? id : "";
        }
    }
    return "";
}

/* The name of a frame's function, from the file or from the library's symbol table. */
static char *symbol_of(const cJSON *file, const cJSON *frame, struct spw_cli_symbols *names)
{
    const char *known = spw_cli_json_text(frame, "symbol");
    const char *library = spw_cli_json_text(frame, "library");
    uint64_t offset = spw_cli_json_number(frame, "offset");
    char *found, *readable;

    if (known != NULL) {
        return spw_cli_symbols_readable(known);
    }
    if (library == NULL || offset == 0) {
        return NULL;
    }
    found = spw_cli_symbols_find(names, library, build_of(file, library), offset - 1);
    if (found == NULL) {
        return NULL;
    }
    readable = spw_cli_symbols_readable(found);
    free(found);
    return readable;
}

static void load_native(const cJSON *file, struct spw_cli_sites_entry *entry,
                        struct spw_cli_symbols *names)
{
    const cJSON *frames = spw_cli_json_list(entry->json, "native"), *frame;
    size_t count = length_of(frames);

    entry->native = calloc(count + 1, sizeof(entry->native[0]));
    entry->symbols = calloc(count + 1, sizeof(entry->symbols[0]));
    if (entry->native == NULL || entry->symbols == NULL) {
        return;
    }
    cJSON_ArrayForEach(frame, frames)
    {
        size_t i = entry->facts.native_count++;

        entry->symbols[i] = symbol_of(file, frame, names);
        entry->native[i] =
            (struct spw_native_frame){spw_cli_json_text(frame, "library"), entry->symbols[i]};
    }
    entry->facts.native = entry->native;
}

static void load_entry(const cJSON *file, const cJSON *json, struct spw_cli_symbols *names,
                       struct spw_cli_sites_entry *entry)
{
    *entry = (struct spw_cli_sites_entry){
        .json = json,
        .id = spw_cli_json_number(json, "id"),
        .rest = spw_cli_json_number(json, "sites"),
        .device = (int)spw_cli_json_number(json, "device"),
        .live_bytes = spw_cli_json_number(json, "live_bytes"),
        .peak_bytes = spw_cli_json_number(json, "peak_bytes"),
        .device_peak_bytes = spw_cli_json_number(json, "device_peak_bytes"),
        .allocs = spw_cli_json_number(json, "allocs"),
        .frees = spw_cli_json_number(json, "frees"),
        .api = spw_cli_json_text(json, "api"),
        .facts = {.thread = spw_cli_json_text(json, "thread"),
                  .tag = spw_cli_json_text(json, "tag"),
                  .node = spw_cli_json_text(json, "node"),
                  .rank = -1,
                  .modules = spw_cli_json_text(json, "module")},
    };
    load_python(entry);
    load_native(file, entry, names);
}

/* Returns the entries of a list in the file. Returns NULL if the file lacks the list, or if memory
 * runs out. */
static struct spw_cli_sites_entry *load_list(const cJSON *file, const char *key,
                                             struct spw_cli_symbols *names, size_t *ret_count)
{
    const cJSON *list = spw_cli_json_list(file, key), *json;
    struct spw_cli_sites_entry *entries =
        list == NULL ? NULL : calloc(length_of(list) + 1, sizeof(entries[0]));

    if (entries == NULL) {
        return NULL;
    }
    cJSON_ArrayForEach(json, list)
    {
        load_entry(file, json, names, &entries[(*ret_count)++]);
    }
    return entries;
}

bool spw_cli_sites_file_load(const char *command, const char *path, bool need_sites,
                             struct spw_cli_sites_file *ret_file)
{
    struct spw_cli_sites_file file = {.json = read_json(command, path, need_sites)};
    struct spw_cli_symbols names = {0};
    bool has_sites;

    if (file.json == NULL) {
        return false;
    }
    has_sites = spw_cli_json_list(file.json, "sites") != NULL;
    file.entries = load_list(file.json, "sites", &names, &file.count);
    file.pinned = load_list(file.json, "pinned_sites", &names, &file.pinned_count);
    spw_cli_symbols_fini(&names);
    if (file.entries == NULL && (need_sites || has_sites)) {
        spw_cli_complain(command,
                         "%s: it has no call sites (SPILLWAY_SITES was off, or the program was "
                         "killed and not started by spillway run or sim)",
                         path);
        spw_cli_sites_file_free(&file);
        return false;
    }
    *ret_file = file;
    return true;
}

static void free_list(struct spw_cli_sites_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct spw_cli_sites_entry *entry = &entries[i];

        for (size_t j = 0; j < entry->facts.native_count; j++) {
            free(entry->symbols[j]);
        }
        free(entry->symbols);
        free(entry->native);
        free(entry->python);
    }
    free(entries);
}

void spw_cli_sites_file_free(struct spw_cli_sites_file *file)
{
    free_list(file->entries, file->count);
    free_list(file->pinned, file->pinned_count);
    cJSON_Delete(file->json);
    *file = (struct spw_cli_sites_file){0};
}
