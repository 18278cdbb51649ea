/* Writes stacks with bytes: collapsed stacks for flamegraph.pl, files for speedscope, and a tree
 * for people. */
#include "cli/report/report.h"
#include "common/path.h"

#include "cli/console/messages.h"
#include "common/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct spw_cli_frame frames[SPW_CLI_FRAMES];

/* Writes a frame as one element of a stack: "train.py:42 forward", or the name of a native
 * function. Replaces semicolons and line breaks, because they separate elements and stacks in the
 * format of collapsed stacks. */
static void frame_text(const struct spw_cli_frame *frame, char *text, size_t capacity)
{
    if (frame->native || frame->file[0] == '\0') {
        snprintf(text, capacity, "%s", frame->name);
    } else {
        snprintf(text, capacity, "%s:%u %s", spw_path_name(frame->file), frame->line, frame->name);
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

/* The line of a site, outermost frame first; Returns NULL if memory runs out. */
static char *line_of(const struct spw_cli_report *report, int device, uint32_t site, uint64_t bytes)
{
    unsigned count = spw_cli_recorded_sites_frames(site, report->shown, frames);
    char text[sizeof(frames[0].name) + sizeof(frames[0].file) + 16];
    char *line = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&line, &length);

    if (stream == NULL) {
        return NULL;
    }
    if (spw_cli_state_devices(&report->state) > 1) {
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
            lines[made] = line_of(report, i, ranked[j].site, ranked[j].bytes);
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

/* ---- tree ---- */

enum { TREE_LEAST_SHARE = 100, INDENT_MOST = 40 }; /* a branch has at least 1/100 of the memory */

struct stack {
    char **words;
    unsigned count;
    uint64_t bytes;
};

/* Stacks with the same frame at a depth. */
struct branch {
    size_t begin, end;
    uint64_t bytes;
};

static bool load_stack(uint32_t site, enum spw_cli_shown shown, uint64_t bytes,
                       struct stack *ret_stack)
{
    unsigned count = spw_cli_recorded_sites_frames(site, shown, frames);
    char text[sizeof(frames[0].name) + sizeof(frames[0].file) + 16];

    *ret_stack = (struct stack){calloc(count + 1, sizeof(char *)), 0, bytes};
    for (unsigned i = count; ret_stack->words != NULL && i-- > 0;) {
        frame_text(&frames[i], text, sizeof(text));
        spw_utf8_plain(text, /* keep */ "");
        ret_stack->words[ret_stack->count] = strdup(text);
        if (ret_stack->words[ret_stack->count] == NULL) {
            break;
        }
        ret_stack->count++;
    }
    return ret_stack->words != NULL;
}

static int compare_stacks(const void *left, const void *right)
{
    const struct stack *one = left, *other = right;

    for (unsigned i = 0; i < one->count && i < other->count; i++) {
        int order = strcmp(one->words[i], other->words[i]);

        if (order != 0) {
            return order;
        }
    }
    return (one->count > other->count) - (one->count < other->count);
}

static int compare_branches(const void *left, const void *right)
{
    const struct branch *one = left, *other = right;

    return (one->bytes < other->bytes) - (one->bytes > other->bytes);
}

/* Splits the stacks from `begin` to `end` by their frame at `depth`. Omits stacks that are not
 * deeper than this. Returns the number of branches. */
static size_t split(const struct stack *stacks, size_t begin, size_t end, unsigned depth,
                    struct branch *ret_branches)
{
    size_t count = 0;

    for (size_t i = begin; i < end; i++) {
        if (stacks[i].count <= depth) {
            continue;
        }
        if (count == 0 || ret_branches[count - 1].end != i ||
            strcmp(stacks[i - 1].words[depth], stacks[i].words[depth]) != 0) {
            ret_branches[count++] = (struct branch){i, i, 0};
        }
        ret_branches[count - 1].end = i + 1;
        ret_branches[count - 1].bytes += stacks[i].bytes;
    }
    qsort(ret_branches, count, sizeof(*ret_branches), compare_branches);
    return count;
}

static void put_branch(struct spw_cli_report *report, uint64_t bytes, uint64_t total,
                       unsigned indent, const char *text)
{
    spw_cli_report_put(report, "  %12s  %s  %*s", spw_cli_size(bytes), spw_cli_share(bytes, total),
                       (int)(indent < INDENT_MOST ? indent : INDENT_MOST), "");
    spw_write(&report->out, text);
    spw_write(&report->out, "\n");
}

/* Writes the branches below a frame, indented if there are several. */
static void put_branches(struct spw_cli_report *report, const struct stack *stacks,
                         struct branch whole, unsigned depth, unsigned indent, uint64_t total)
{
    struct branch *branches = calloc(whole.end - whole.begin + 1, sizeof(*branches));
    size_t count = branches != NULL ? split(stacks, whole.begin, whole.end, depth, branches) : 0;
    uint64_t rest = 0;
    size_t omitted = 0;
    char text[64];

    for (size_t i = 0; i < count; i++) {
        if (branches[i].bytes < total / TREE_LEAST_SHARE) {
            rest += branches[i].bytes;
            omitted++;
            continue;
        }
        put_branch(report, branches[i].bytes, total, indent,
                   stacks[branches[i].begin].words[depth]);
        put_branches(report, stacks, branches[i], depth + 1, indent + (count > 1 ? 2 : 0), total);
    }
    if (omitted > 0) {
        snprintf(text, sizeof(text), "%zu more below 1 %%", omitted);
        put_branch(report, rest, total, indent, text);
    }
    free(branches);
}

static void put_tree(struct spw_cli_report *report, int device)
{
    size_t count, made = 0;
    struct spw_cli_ranked *ranked =
        spw_cli_report_rank(&report->state.devices[device], spw_cli_state_at_peak, &count);
    struct stack *stacks = calloc(count + 1, sizeof(*stacks));
    uint64_t total = 0;

    for (size_t i = 0; ranked != NULL && stacks != NULL && i < count; i++) {
        total += ranked[i].bytes;
        made += load_stack(ranked[i].site, report->shown, ranked[i].bytes, &stacks[made]);
    }
    if (made > 0 && total > 0) {
        spw_cli_report_put(report, "device %d at the peak: %s\n", device, spw_cli_size(total));
        qsort(stacks, made, sizeof(*stacks), compare_stacks);
        put_branches(report, stacks, (struct branch){0, made, total}, 0, 0, total);
    }
    for (size_t i = 0; i < made; i++) {
        for (unsigned j = 0; j < stacks[i].count; j++) {
            free(stacks[i].words[j]);
        }
        free(stacks[i].words);
    }
    free(stacks);
    free(ranked);
}

void spw_cli_report_tree(struct spw_cli_report *report)
{
    for (int i = 0; i < spw_cli_state_devices(&report->state); i++) {
        put_tree(report, i);
    }
}

/* ---- speedscope ---- */

/* Numbers the frames of all sites. The frames of site i begin at first[i]. */
struct shared {
    unsigned *first;
    unsigned count; /* frames numbered so far */
};

static void put_shared(struct spw_cli_report *report, struct shared *shared)
{
    uint32_t sites = spw_cli_recorded_sites_count(report->state.sites);
    struct spw_writer *out = &report->out;

    for (uint32_t site = 0; site <= sites; site++) {
        unsigned count = spw_cli_recorded_sites_frames(site, report->shown, frames);

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
