#include "cli/reports/usage.h"

#include "cli/console/json.h"
#include "cli/console/messages.h"
#include "cli/recording/blocks.h"
#include "cli/reports/sites_file.h"
#include "common/grow.h"
#include "common/path.h"
#include "common/utf8.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDENTITY = 16 * 1024, TEXT = 64 * 1024, OPERATOR = 128 };

/* ---- lines ---- */

/* The part of a path that is the same on every machine: the path in the installed packages, or the
 * file's name. */
static const char *place_of(const char *file)
{
    static const char packages[] = "-packages/";
    const char *found = file == NULL ? NULL : strstr(file, packages);

    return file == NULL ? "?" : found != NULL ? found + sizeof(packages) - 1 : spw_path_name(file);
}

/* A text that grows in a buffer of IDENTITY bytes. */
struct text {
    char *bytes;
    size_t used;
};

static void append(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void append(struct text *text, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(text->bytes + text->used, IDENTITY - text->used, format, arguments);
    va_end(arguments);
    text->used += length > 0 ? (size_t)length : 0;
    text->used = text->used < IDENTITY ? text->used : IDENTITY - 1;
}

/* Appends the operator that Python or the autograd engine called; without Python, the innermost
 * function with a name. */
static void append_native(struct text *text, const struct spw_callsite_facts *facts)
{
    char operator[OPERATOR];

    if (spw_callsite_operator(facts, operator, sizeof(operator))) {
        append(text, ";%s", operator);
        return;
    }
    for (size_t i = 0; facts->python_count == 0 && i < facts->native_count; i++) {
        if (facts->native[i].symbol != NULL) {
            append(text, ";%s", facts->native[i].symbol);
            return;
        }
    }
}

static void write_identity(const struct spw_callsite_facts *facts, const char *label,
                           bool with_lines, char *ret_text)
{
    struct text text = {.bytes = ret_text};

    ret_text[0] = '\0';
    for (size_t i = 0; i < facts->python_count; i++) {
        append(&text, "%s:%s", place_of(facts->python[i].file),
               facts->python[i].function != NULL ? facts->python[i].function : "?");
        if (with_lines) {
            append(&text, ":%" PRIu32, facts->python[i].line);
        }
        append(&text, ";");
    }
    append(&text, "node=%s", facts->node != NULL ? facts->node : "");
    if (facts->thread != NULL) {
        append(&text, ";thread=%.*s", (int)strcspn(facts->thread, "0123456789"), facts->thread);
    }
    append_native(&text, facts);
    if (text.used == strlen("node=")) {
        append(&text, "%s", label);
    }
}

/* FNV-1a. */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    while (*text != '\0') {
        hash = (hash ^ (uint8_t)*text++) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static struct spw_cli_line *find(struct spw_cli_device_usage *device, const char *identity,
                                 uint64_t hash)
{
    for (size_t i = 0; i < device->line_count; i++) {
        if (device->lines[i].hash == hash && strcmp(device->lines[i].identity, identity) == 0) {
            return &device->lines[i];
        }
    }
    return NULL;
}

static void free_line(struct spw_cli_line *line)
{
    free(line->identity);
    free(line->family);
    free(line->text);
    free(line->lines);
}

static struct spw_cli_line *add_line(struct spw_cli_device_usage *device,
                                     const struct spw_callsite_facts *facts, const char *identity,
                                     const char *label)
{
    static char family[IDENTITY];
    struct spw_cli_line line = {.hash = hash_of(identity), .line_count = facts->python_count};

    if (!SPW_RESIZE(&device->lines, device->line_count + 1)) {
        return NULL;
    }
    write_identity(facts, label, /* with_lines */ false, family);
    snprintf(line.label, sizeof(line.label), "%s", label);
    line.identity = strdup(identity);
    line.family = strdup(family);
    line.lines = calloc(facts->python_count + 1, sizeof(*line.lines));
    if (line.identity == NULL || line.family == NULL || line.lines == NULL) {
        free_line(&line);
        return NULL;
    }
    for (size_t i = 0; i < facts->python_count; i++) {
        line.lines[i] = facts->python[i].line;
    }
    device->lines[device->line_count] = line;
    return &device->lines[device->line_count++];
}

bool spw_cli_usage_add(struct spw_cli_device_usage *device, const struct spw_callsite_facts *facts,
                       const char *api, const char *label, const struct spw_cli_line *figures)
{
    static char identity[IDENTITY], text[TEXT];
    const struct spw_request_facts request = {.device = -1, .api = api};
    char own[SPW_CALLSITE_LABEL];
    struct spw_cli_line *line;

    if (label == NULL) {
        spw_callsite_label(facts, own, sizeof(own));
        spw_utf8_plain(own, /* keep */ "");
        label = own;
    }
    write_identity(facts, label, /* with_lines */ true, identity);
    line = find(device, identity, hash_of(identity));
    line = line != NULL ? line : add_line(device, facts, identity, label);
    if (line == NULL) {
        return false;
    }
    if (line->text == NULL || figures->peak > line->peak) {
        (void)spw_callsite_print(facts, &request, text, sizeof(text));
        free(line->text);
        line->text = strdup(text);
    }
    line->at_peak += figures->at_peak;
    line->peak = figures->peak > line->peak ? figures->peak : line->peak;
    line->allocs += figures->allocs;
    line->growth += figures->growth;
    return line->text != NULL;
}

/* ---- a statistics file ---- */

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

/* ---- either ---- */

bool spw_cli_usage_load(const char *command, const char *path, struct spw_cli_usage *ret_usage)
{
    *ret_usage = (struct spw_cli_usage){.path = path, .rank = -1};
    if (spw_cli_blocks_recognise(path)) {
        ret_usage->is_recording = true;
        return spw_cli_usage_of_recording(command, path, ret_usage);
    }
    return load_stats(command, path, ret_usage);
}

void spw_cli_usage_free(struct spw_cli_usage *usage)
{
    for (int i = 0; i < usage->device_count && usage->devices != NULL; i++) {
        for (size_t j = 0; j < usage->devices[i].line_count; j++) {
            free_line(&usage->devices[i].lines[j]);
        }
        free(usage->devices[i].lines);
    }
    free(usage->devices);
    *usage = (struct spw_cli_usage){0};
}
