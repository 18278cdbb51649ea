#include "cli/usage/usage.h"

#include "common/grow.h"
#include "common/path.h"
#include "common/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 64 * 1024, OPERATOR = 128 };

/* Returns the part of a path that is the same on every machine. This is the path below the
 * installed packages, or otherwise the file name. */
static const char *place_of(const char *file)
{
    static const char packages[] = "-packages/";
    const char *found = file == NULL ? NULL : strstr(file, packages);

    return file == NULL ? "?" : found != NULL ? found + sizeof(packages) - 1 : spw_path_name(file);
}

/* Appends the operator that Python or the autograd engine called. If a site has neither an operator
 * nor Python frames, appends the innermost function that has a name. */
static void append_native(FILE *text, const struct spw_callsite_facts *facts)
{
    char operator[OPERATOR];

    if (spw_callsite_operator(facts, operator, sizeof(operator))) {
        fprintf(text, ";%s", operator);
        return;
    }
    for (size_t i = 0; facts->python_count == 0 && i < facts->native_count; i++) {
        if (facts->native[i].symbol != NULL) {
            fprintf(text, ";%s", facts->native[i].symbol);
            return;
        }
    }
}

/* The caller frees the text. Returns NULL if memory runs out. */
static char *identity_of(const struct spw_callsite_facts *facts, const char *label, bool with_lines)
{
    char *identity = NULL;
    size_t length = 0;
    FILE *text = open_memstream(&identity, &length);

    if (text == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < facts->python_count; i++) {
        fprintf(text, "%s:%s", place_of(facts->python[i].file),
                facts->python[i].function != NULL ? facts->python[i].function : "?");
        if (with_lines) {
            fprintf(text, ":%" PRIu32, facts->python[i].line);
        }
        fputc(';', text);
    }
    fprintf(text, "node=%s", facts->node != NULL ? facts->node : "");
    if (facts->thread != NULL) {
        fprintf(text, ";thread=%.*s", (int)strcspn(facts->thread, "0123456789"), facts->thread);
    }
    append_native(text, facts);
    if (ftell(text) == (long)strlen("node=")) {
        fputs(label, text);
    }
    return fclose(text) == 0 ? identity : NULL;
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

static struct spw_cli_usage_line *find(struct spw_cli_device_usage *device, const char *identity,
                                       uint64_t hash)
{
    for (size_t i = 0; i < device->line_count; i++) {
        if (device->lines[i].hash == hash && strcmp(device->lines[i].identity, identity) == 0) {
            return &device->lines[i];
        }
    }
    return NULL;
}

static void free_line(struct spw_cli_usage_line *line)
{
    free(line->identity);
    free(line->family);
    free(line->text);
    free(line->lines);
}

/* Takes over `identity`, even on failure. */
static struct spw_cli_usage_line *add_line(struct spw_cli_device_usage *device,
                                           const struct spw_callsite_facts *facts, char *identity,
                                           const char *label)
{
    struct spw_cli_usage_line line = {
        .hash = hash_of(identity),
        .identity = identity,
        .family = identity_of(facts, label, /* with_lines */ false),
        .lines = calloc(facts->python_count + 1, sizeof(*line.lines)),
        .line_count = facts->python_count,
    };

    if (line.family == NULL || line.lines == NULL ||
        !SPW_RESIZE(&device->lines, device->line_count + 1)) {
        free_line(&line);
        return NULL;
    }
    snprintf(line.label, sizeof(line.label), "%s", label);
    for (size_t i = 0; i < facts->python_count; i++) {
        line.lines[i] = facts->python[i].line;
    }
    device->lines[device->line_count] = line;
    return &device->lines[device->line_count++];
}

bool spw_cli_usage_add(struct spw_cli_device_usage *device, const struct spw_callsite_facts *facts,
                       const char *api, const char *label, const struct spw_cli_usage_line *figures)
{
    static char text[TEXT];
    const struct spw_request_facts request = {.device = -1, .api = api};
    char own[SPW_CALLSITE_LABEL];
    struct spw_cli_usage_line *line;
    char *identity;

    if (label == NULL) {
        spw_callsite_label(facts, own, sizeof(own));
        spw_utf8_plain(own, /* keep */ "");
        label = own;
    }
    identity = identity_of(facts, label, /* with_lines */ true);
    if (identity == NULL) {
        return false;
    }
    line = find(device, identity, hash_of(identity));
    if (line != NULL) {
        free(identity);
    } else {
        line = add_line(device, facts, identity, label);
    }
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
