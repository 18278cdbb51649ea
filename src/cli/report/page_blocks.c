#include "cli/report/page_parts.h"

#include "callsite/label.h"
#include "cli/report/categories.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The page's blocks, shared by its devices. */
enum { BLOCKS_OF_ALL = 4000, BLOCKS_MOST = 2000, BLOCKS_LEAST = 60 };

struct kept {
    struct spw_cli_block block;
    uint64_t died; /* UINT64_MAX: live at the end */
};

/* The largest blocks so far, as a heap with the smallest of them on top. */
struct heap {
    struct kept *list;
    size_t count;
};

struct spw_cli_page_blocks {
    int device;
    uint64_t peak_event;
    uint64_t all; /* number of blocks */
    size_t most;  /* blocks of a heap */
    struct heap at_peak, others;
};

struct spw_cli_page_blocks *spw_cli_page_blocks_create(const struct spw_cli_report *report,
                                                       int ordinal, unsigned devices)
{
    struct spw_cli_page_blocks *blocks = calloc(1, sizeof(*blocks));

    if (blocks == NULL) {
        return NULL;
    }
    blocks->device = ordinal;
    blocks->peak_event = report->state.devices[ordinal].peak_event;
    blocks->most = spw_cli_page_share(BLOCKS_OF_ALL, devices, BLOCKS_LEAST, BLOCKS_MOST) / 2;
    blocks->at_peak.list = calloc(blocks->most, sizeof(struct kept));
    blocks->others.list = calloc(blocks->most, sizeof(struct kept));
    if (blocks->at_peak.list == NULL || blocks->others.list == NULL) {
        spw_cli_page_blocks_free(blocks);
        return NULL;
    }
    return blocks;
}

void spw_cli_page_blocks_free(struct spw_cli_page_blocks *blocks)
{
    if (blocks != NULL) {
        free(blocks->at_peak.list);
        free(blocks->others.list);
        free(blocks);
    }
}

/* ---- keeping the largest ---- */

/* Orders blocks by size, then by age: the older of two equal blocks counts as larger. */
static bool is_smaller(const struct kept *one, const struct kept *other)
{
    return one->block.counted != other->block.counted ? one->block.counted < other->block.counted
                                                      : one->block.event > other->block.event;
}

static void swap(struct kept *one, struct kept *other)
{
    struct kept kept = *one;

    *one = *other;
    *other = kept;
}

static void rise(struct heap *heap, size_t at)
{
    while (at > 0 && is_smaller(&heap->list[at], &heap->list[(at - 1) / 2])) {
        swap(&heap->list[at], &heap->list[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static void sink(struct heap *heap)
{
    size_t at = 0, child;

    while ((child = 2 * at + 1) < heap->count) {
        child += child + 1 < heap->count && is_smaller(&heap->list[child + 1], &heap->list[child]);
        if (!is_smaller(&heap->list[child], &heap->list[at])) {
            break;
        }
        swap(&heap->list[child], &heap->list[at]);
        at = child;
    }
}

static void keep(struct spw_cli_page_blocks *blocks, const struct spw_cli_block *block,
                 uint64_t died, uint64_t died_event)
{
    bool at_peak = block->event <= blocks->peak_event && died_event > blocks->peak_event;
    struct heap *heap = at_peak ? &blocks->at_peak : &blocks->others;
    struct kept kept = {*block, died};

    if (block->counted == 0) {
        return;
    }
    blocks->all++;
    if (heap->count < blocks->most) {
        heap->list[heap->count++] = kept;
        rise(heap, heap->count - 1);
    } else if (is_smaller(&heap->list[0], &kept)) {
        heap->list[0] = kept;
        sink(heap);
    }
}

void spw_cli_page_blocks_take(struct spw_cli_page_blocks *blocks,
                              const struct spw_cli_report *report,
                              const struct spw_cli_event *event, const struct spw_cli_block *freed)
{
    if (freed != NULL) {
        keep(blocks, freed, event->time, report->state.events);
    }
}

static void keep_live(struct spw_cli_page_blocks *blocks, const struct spw_cli_report *report)
{
    const struct spw_cli_block *block;
    size_t cursor = 0;

    while ((block = spw_map_next(&report->state.live, &cursor)) != NULL) {
        if (block->device == blocks->device) {
            keep(blocks, block, UINT64_MAX, UINT64_MAX);
        }
    }
}

/* ---- JSON ---- */

static int compare(const void *left, const void *right)
{
    return is_smaller(left, right) ? 1 : is_smaller(right, left) ? -1 : 0;
}

static void write_block(const struct kept *kept, const struct spw_cli_report *report,
                        struct spw_cli_page_frames *texts, struct spw_writer *out)
{
    char label[SPW_CALLSITE_LABEL], address[24];

    snprintf(address, sizeof(address), "0x%" PRIx64, kept->block.address);
    spw_cli_recorded_sites_label(kept->block.site, label);
    spw_write(out, "[\"");
    spw_write(out, address);
    spw_write(out, "\",");
    spw_write_number(out, kept->block.bytes);
    spw_write(out, ",");
    spw_write_number(out, spw_cli_page_frames_number(texts, label, /* wrapper */ false));
    spw_write(out, ",");
    spw_write_number(out, kept->block.time / SPW_CLI_PAGE_UNITS_IN_US);
    spw_write(out, ",");
    if (kept->died == UINT64_MAX) {
        spw_write(out, "-1");
    } else {
        spw_write_number(out, kept->died / SPW_CLI_PAGE_UNITS_IN_US);
    }
    spw_write(out, ",");
    spw_write_number(out, spw_cli_report_category(report, &kept->block));
    spw_write(out, "]");
}

static void write_heap(struct heap *heap, const struct spw_cli_report *report,
                       struct spw_cli_page_frames *texts, struct spw_writer *out)
{
    qsort(heap->list, heap->count, sizeof(*heap->list), compare);
    for (size_t i = 0; i < heap->count; i++) {
        spw_write(out, i == 0 ? "\n" : ",\n");
        write_block(&heap->list[i], report, texts, out);
    }
}

void spw_cli_page_blocks_write(struct spw_cli_page_blocks *blocks, struct spw_cli_report *report,
                               struct spw_cli_page_frames *frames)
{
    struct spw_writer *out = &report->out;

    keep_live(blocks, report);
    spw_write_figure(out, "blocks_in_all", blocks->all);
    spw_write(out, ", \"blocks_at_peak\": [");
    write_heap(&blocks->at_peak, report, frames, out);
    spw_write(out, "], \"blocks\": [");
    write_heap(&blocks->others, report, frames, out);
    spw_write(out, "]");
}
