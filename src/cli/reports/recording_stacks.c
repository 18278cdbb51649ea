/* Stacks with bytes: collapsed stacks as flamegraph.pl reads them, and speedscope's files. */
#include "cli/reports/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct spw_cli_frame frames[SPW_CLI_FRAMES];

/* A frame as one word of a stack: "train.py:42 forward", or a native function. Semicolons and
 * spaces at the end of a stack mean something to readers of collapsed stacks. */
static void frame_text(const struct spw_cli_frame *frame, char *text, size_t capacity)
{
    const char *slash = strrchr(frame->file, '/');
    const char *file = slash != NULL ? slash + 1 : frame->file;

    if (frame->native || frame->file[0] == '\0') {
        snprintf(text, capacity, "%s", frame->name);
    } else {
        snprintf(text, capacity, "%s:%u %s", file, frame->line, frame->name);
    }
    for (char *at = text; *at != '\0'; at++) {
        *at = *at == ';' ? ',' : *at == '\n' || *at == '\r' ? ' ' : *at;
    }
}

/* ---- collapsed stacks ---- */

static int compare_lines(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* The line of a site, outermost frame first; NULL without memory. */
static char *line_of(int device, int devices, uint32_t site, uint64_t bytes)
{
    unsigned count = spw_cli_recorded_sites_frames(site, frames);
    char text[sizeof(frames[0].name) + sizeof(frames[0].file) + 16];
    char *line = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&line, &length);

    if (stream == NULL) {
        return NULL;
    }
    if (devices > 1) {
        fprintf(stream, "device %d;", device);
    }
    for (unsigned i = count; i-- > 0;) {
        frame_text(&frames[i], text, sizeof(text));
        fprintf(stream, "%s%s", text, i > 0 ? ";" : "");
    }
    fprintf(stream, " %llu\n", (unsigned long long)bytes);
    return fclose(stream) == 0 ? line : NULL;
}

void spw_cli_report_folded(struct spw_cli_report *report)
{
    int devices = spw_cli_state_devices(&report->state);

    for (int i = 0; i < devices; i++) {
        size_t count, made = 0;
        struct spw_cli_ranked *ranked =
            spw_cli_report_rank(&report->state.devices[i], spw_cli_state_at_peak, &count);
        char **lines = calloc(count + 1, sizeof(*lines));

        for (size_t j = 0; ranked != NULL && lines != NULL && j < count; j++) {
            lines[made] = line_of(i, devices, ranked[j].site, ranked[j].bytes);
            made += lines[made] != NULL;
        }
        if (lines != NULL) {
            qsort(lines, made, sizeof(*lines), compare_lines);
        }
        for (size_t j = 0; j < made; j++) {
            spw_write(&report->out, lines[j]);
            free(lines[j]);
        }
        free(lines);
        free(ranked);
    }
}

/* ---- speedscope ---- */

/* The frames of all sites, each with a number: site i has those from first[i] on. */
struct shared {
    unsigned *first;
    unsigned count; /* of the frames so far */
};

static void put_shared(struct spw_cli_report *report, struct shared *shared)
{
    uint32_t sites = spw_cli_recorded_sites_count(report->state.sites);
    struct spw_writer *out = &report->out;

    for (uint32_t site = 0; site <= sites; site++) {
        unsigned count = spw_cli_recorded_sites_frames(site, frames);

        shared->first[site] = shared->count;
        for (unsigned i = count; i-- > 0;) {
            spw_write(out, shared->count++ == 0 ? "\n{\"name\": " : ",\n{\"name\": ");
            spw_write_string(out, frames[i].name);
            spw_write_text(out, "file", frames[i].file);
            if (frames[i].line > 0) {
                spw_write_figure(out, "line", frames[i].line);
            }
            spw_write(out, "}");
        }
    }
    shared->first[sites + 1] = shared->count;
}

static void put_profile(struct spw_cli_report *report, const struct shared *shared, int device,
                        const char *title, spw_cli_weight *weight, bool first)
{
    struct spw_writer *out = &report->out;
    char name[64];
    size_t count;
    struct spw_cli_ranked *ranked =
        spw_cli_report_rank(&report->state.devices[device], weight, &count);
    uint64_t total = 0;

    snprintf(name, sizeof(name), "device %d: %s", device, title);
    spw_write(out, first ? "\n{\"type\": \"sampled\"" : ",\n{\"type\": \"sampled\"");
    spw_write_text(out, "name", name);
    spw_write(out, ", \"unit\": \"bytes\", \"samples\": [");
    for (size_t i = 0; ranked != NULL && i < count; i++) {
        spw_write(out, i == 0 ? "[" : ", [");
        for (unsigned j = shared->first[ranked[i].site]; j < shared->first[ranked[i].site + 1];
             j++) {
            spw_write(out, j == shared->first[ranked[i].site] ? "" : ", ");
            spw_write_number(out, j);
        }
        spw_write(out, "]");
    }
    spw_write(out, "], \"weights\": [");
    for (size_t i = 0; ranked != NULL && i < count; i++) {
        spw_write(out, i == 0 ? "" : ", ");
        spw_write_number(out, ranked[i].bytes);
        total += ranked[i].bytes;
    }
    spw_write(out, "], \"startValue\": 0");
    spw_write_figure(out, "endValue", total);
    spw_write(out, "}");
    free(ranked);
}

void spw_cli_report_speedscope(struct spw_cli_report *report)
{
    int devices = spw_cli_state_devices(&report->state);
    struct spw_writer *out = &report->out;
    struct shared shared = {
        calloc(spw_cli_recorded_sites_count(report->state.sites) + 2, sizeof(*shared.first)), 0};
    bool first = true;

    if (shared.first == NULL) {
        return;
    }
    spw_write(out, "{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\"");
    spw_write_text(out, "name", report->state.about[0]);
    spw_write_text(out, "exporter", "spillway");
    spw_write(out, ", \"activeProfileIndex\": 0, \"shared\": {\"frames\": [");
    put_shared(report, &shared);
    spw_write(out, "]}, \"profiles\": [");
    for (int i = 0; i < devices; i++) {
        put_profile(report, &shared, i, "live at the peak", spw_cli_state_at_peak, first);
        put_profile(report, &shared, i, "live at the end", spw_cli_report_live, false);
        put_profile(report, &shared, i, "allocated in all", spw_cli_report_total, false);
        first = false;
    }
    spw_write(out, "]}\n");
    free(shared.first);
}
