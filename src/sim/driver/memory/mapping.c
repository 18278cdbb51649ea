#include "sim/driver/memory/mapping.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sim/driver/core/calls.h"
#include "sim/driver/core/context.h"
#include "sim/driver/core/sim_options.h"

static struct sim_rangemap mappings;

/* Kernel mappings in use: see cost_of(). */
static size_t kernel_used;

/* A range that has no mapping in the table but is still mapped in the kernel, because a hole at
 * this place would exceed the limit. The range fills the space between two mappings. */
struct remains {
    struct sim_range range;
    bool merged; /* the kernel has one mapping for this range and the mapping above it */
};

static struct sim_rangemap all_remains;

static size_t kernel_limit(void)
{
    static size_t limit;
    unsigned long count;
    FILE *file;

    if (limit != 0) {
        return limit;
    }
    limit = sim_options()->map_max;
    if (limit == 0) {
        file = fopen("/proc/sys/vm/max_map_count", "re");
        if (file == NULL || fscanf(file, "%lu", &count) != 1) {
            count = 65530;
        }
        if (file != NULL) {
            fclose(file);
        }
        limit = count / 4 * 3; /* the rest is the program's */
    }
    return limit;
}

struct sim_mapping *sim_mapping_find(uint64_t address)
{
    return (struct sim_mapping *)sim_rangemap_find(&mappings, address);
}

struct sim_mapping *sim_mapping_from(uint64_t address)
{
    return (struct sim_mapping *)sim_rangemap_from(&mappings, address);
}

struct sim_mapping *sim_mapping_next(const struct sim_mapping *mapping)
{
    return (struct sim_mapping *)sim_rangemap_next(&mappings, &mapping->range);
}

bool sim_mapping_fills(uint64_t start, uint64_t end)
{
    const struct sim_mapping *mapping = sim_mapping_find(start);

    if (mapping == NULL || mapping->range.start != start) {
        return false;
    }
    while (sim_range_end(&mapping->range) < end) {
        uint64_t next = sim_range_end(&mapping->range);

        mapping = sim_mapping_find(next);
        if (mapping == NULL) {
            return false;
        }
    }
    return sim_range_end(&mapping->range) == end;
}

static struct remains *remains_find(uint64_t address)
{
    return (struct remains *)sim_rangemap_find(&all_remains, address);
}

/* Extends a range by the remains that touch it. */
static void remains_include(uint64_t *start, uint64_t *end)
{
    const struct remains *below = remains_find(*start - 1), *above = remains_find(*end);

    if (below != NULL) {
        *start = below->range.start;
    }
    if (above != NULL) {
        *end = sim_range_end(&above->range);
    }
}

static void remains_forget(uint64_t start, uint64_t end)
{
    struct sim_range *range;

    while ((range = sim_rangemap_from(&all_remains, start)) != NULL && range->start < end) {
        sim_rangemap_remove(&all_remains, range);
        free(range);
    }
}

/* True if the two adjacent mappings are one mapping in the kernel. */
static bool merge(const struct sim_mapping *below, const struct sim_mapping *above)
{
    return below->prot == above->prot && below->reservation == above->reservation &&
           sim_extent_fd(&below->chunk->extent) == sim_extent_fd(&above->chunk->extent) &&
           sim_range_end(&below->chunk->extent.range) == above->chunk->extent.range.start;
}

/* The number of kernel mappings that one mapping adds. It adds one for itself, unless it continues
 * the mapping below. It adds another one for the unmapped space behind it, unless a mapping
 * follows. */
static size_t cost_of(const struct sim_mapping *mapping)
{
    const struct remains *space = remains_find(mapping->range.start - 1);
    const struct sim_mapping *below, *above;
    size_t cost = 2;

    if (mapping->prot == 0) {
        return 0;
    }
    below = sim_mapping_find(mapping->range.start - 1);
    if ((below != NULL && below->prot != 0 && merge(below, mapping)) ||
        (space != NULL && space->merged)) {
        cost--;
    }
    above = sim_mapping_find(sim_range_end(&mapping->range));
    if ((above != NULL && above->prot != 0) ||
        remains_find(sim_range_end(&mapping->range)) != NULL) {
        cost--;
    }
    return cost;
}

/* The cost of all mappings that overlap or touch a range. */
static size_t cost_around(uint64_t start, uint64_t end)
{
    size_t cost = 0;

    for (const struct sim_mapping *mapping = sim_mapping_from(start - 1);
         mapping != NULL && mapping->range.start <= end; mapping = sim_mapping_next(mapping)) {
        cost += cost_of(mapping);
    }
    return cost;
}

static int wanted_prot(const struct sim_mapping *mapping)
{
    int prot = mapping->host_prot;

    if (!mapping->reservation->real || mapping->kind != SIM_MAPPING_USER) {
        return 0;
    }
    if (sim_options()->host_map) {
        prot |= mapping->readers != 0 ? PROT_READ : 0;
        prot |= mapping->writers != 0 ? PROT_WRITE : 0;
    }
    return prot;
}

static bool kernel_map(uint64_t start, uint64_t end, int prot, const struct sim_extent *extent)
{
    return mmap((void *)(uintptr_t)start, (size_t)(end - start), prot,
                MAP_SHARED | MAP_FIXED | MAP_NORESERVE, sim_extent_fd(extent),
                (off_t)extent->range.start) != MAP_FAILED;
}

/* Makes a range inaccessible again, as it was after the reservation. If the kernel's limit on
 * mappings is reached, the old content stays visible to the process. */
static void kernel_unmap(uint64_t start, uint64_t end)
{
    (void)mmap((void *)(uintptr_t)start, (size_t)(end - start), PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static void set_prot(uint64_t start, uint64_t end, int prot)
{
    for (struct sim_mapping *mapping = sim_mapping_from(start);
         mapping != NULL && mapping->range.start < end; mapping = sim_mapping_next(mapping)) {
        mapping->prot = prot;
        mapping->chunk->extent.touched |= prot != 0; /* the process may write from now on */
    }
}

static bool is_too_much(size_t before, size_t after)
{
    return after > before && kernel_used - before + after > kernel_limit();
}

/* Records a range that stays mapped in the kernel. `before`: the range's cost when all of it was in
 * the table. */
static bool remains_keep(uint64_t start, uint64_t end, size_t before)
{
    struct remains *space = calloc(1, sizeof(*space));

    if (space == NULL) {
        return false;
    }
    space->range.start = start;
    space->range.size = end - start;
    sim_rangemap_insert(&all_remains, &space->range);
    space->merged = cost_around(start, end) > before;
    return true;
}

/* Removes the kernel mappings of a range that no longer has a mapping in the table. A hole splits a
 * kernel mapping in two. If this would exceed the limit, the function unmaps nothing and returns
 * false; the old content then stays visible until an adjacent mapping is removed. `before`: the
 * cost of the range when its kernel mappings were created. */
static bool withdraw(uint64_t start, uint64_t end, size_t before)
{
    size_t after;

    remains_forget(start, end);
    after = cost_around(start, end);
    if (is_too_much(before, after) && remains_keep(start, end, before)) {
        return false;
    }
    kernel_unmap(start, end);
    kernel_used = kernel_used - before + after;
    return true;
}

/* Removes the kernel mappings of the remains that touch a range or extend beyond it. False if some
 * remains stay mapped. */
static bool withdraw_remains(uint64_t start, uint64_t end)
{
    const uint64_t beside[] = {start - 1, end};

    for (size_t i = 0; i < sizeof(beside) / sizeof(*beside); i++) {
        const struct remains *space = remains_find(beside[i]);

        if (space != NULL) {
            uint64_t from = space->range.start, to = sim_range_end(&space->range);

            if (!withdraw(from, to, cost_around(from, to))) {
                return false;
            }
        }
    }
    return true;
}

/* Applies the access of a run of adjacent mappings that the kernel can map in one call. `first` is
 * the lowest mapping. */
static void apply_run(const struct sim_mapping *first, uint64_t end, int prot, bool was_mapped)
{
    static bool said;
    uint64_t start = first->range.start, from = start, to = end;
    bool is_free = prot != 0 && withdraw_remains(start, end);
    size_t before, after, remains = all_remains.count;

    remains_include(&from, &to);
    before = cost_around(from, to);
    set_prot(start, end, prot);
    if (is_free) {
        remains_forget(start, end); /* replaced by the new mapping */
        after = cost_around(from, to);
        if (!is_too_much(before, after) && kernel_map(start, end, prot, &first->chunk->extent)) {
            kernel_used = kernel_used - before + after;
            return;
        }
    }
    if (prot != 0) {
        sim_warn_once(&said,
                      "%zu kernel mappings are in use (vm.max_map_count): the host cannot access "
                      "simulated memory that is mapped from now on",
                      kernel_used);
        set_prot(start, end, 0);
    }
    if (was_mapped || all_remains.count != remains) {
        (void)withdraw(from, to, before);
    }
}

void sim_mapping_apply(uint64_t start, uint64_t end)
{
    struct sim_mapping *mapping = sim_mapping_from(start);

    while (mapping != NULL && mapping->range.start < end) {
        const struct sim_mapping *first = mapping, *last = mapping;
        int prot = wanted_prot(first);
        bool was_mapped = first->prot != 0, differs = first->prot != prot;

        mapping = sim_mapping_next(mapping);
        while (mapping != NULL && mapping->range.start < end && wanted_prot(mapping) == prot &&
               mapping->range.start == sim_range_end(&last->range) &&
               mapping->reservation == last->reservation &&
               sim_extent_fd(&mapping->chunk->extent) == sim_extent_fd(&last->chunk->extent) &&
               mapping->chunk->extent.range.start == sim_range_end(&last->chunk->extent.range)) {
            was_mapped |= mapping->prot != 0;
            differs |= mapping->prot != prot;
            last = mapping;
            mapping = sim_mapping_next(mapping);
        }
        if (differs) {
            apply_run(first, sim_range_end(&last->range), prot, was_mapped);
        }
    }
}

/* Subtracts the cost of a chunk's mappings. Must be called before the content moves to another
 * backing, because the cost depends on the backing. */
static void discount(struct sim_chunk *chunk)
{
    for (struct sim_mapping *mapping = chunk->mappings; mapping != NULL; mapping = mapping->next) {
        uint64_t start = mapping->range.start, end = sim_range_end(&mapping->range);
        size_t before = cost_around(start, end);

        mapping->prot = 0; /* of the old file */
        kernel_used = kernel_used - before + cost_around(start, end);
    }
}

int sim_mapping_export(struct sim_chunk *chunk)
{
    bool isolated;

    discount(chunk);
    isolated = sim_chunk_isolate(chunk);
    for (struct sim_mapping *mapping = chunk->mappings; mapping != NULL; mapping = mapping->next) {
        sim_mapping_apply(mapping->range.start, sim_range_end(&mapping->range));
    }
    return isolated ? sim_extent_export(&chunk->extent) : -1;
}

CUresult sim_mapping_create(struct sim_reservation *reservation, uint64_t address,
                            struct sim_chunk *chunk, enum sim_mapping_kind kind,
                            struct sim_mapping **ret_mapping)
{
    struct sim_mapping *mapping = calloc(1, sizeof(*mapping));

    if (mapping == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!sim_chunk_place(chunk, sim_space_offset(reservation, address))) {
        free(mapping);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    mapping->range.start = address;
    mapping->range.size = chunk->size;
    mapping->kind = kind;
    mapping->reservation = reservation;
    mapping->chunk = chunk;
    mapping->next = chunk->mappings;
    chunk->mappings = mapping;
    reservation->mappings++;
    sim_rangemap_insert(&mappings, &mapping->range);
    *ret_mapping = mapping;
    return CUDA_SUCCESS;
}

static void forget(struct sim_mapping *mapping)
{
    struct sim_reservation *reservation = mapping->reservation;
    struct sim_chunk *chunk = mapping->chunk;
    struct sim_mapping **link = &chunk->mappings;

    while (*link != mapping) {
        link = &(*link)->next;
    }
    *link = mapping->next;
    reservation->mappings--;
    if (reservation->mappings == 0) {
        remains_forget(reservation->range.start, sim_range_end(&reservation->range));
    }
    sim_rangemap_remove(&mappings, &mapping->range);
    free(mapping);
    sim_chunk_settle(chunk);
}

void sim_mapping_remove(uint64_t start, uint64_t end)
{
    uint64_t from = start, to = end;
    struct sim_mapping *mapping;
    bool was_mapped = false;
    size_t before;

    for (mapping = sim_mapping_from(start); mapping != NULL && mapping->range.start < end;
         mapping = sim_mapping_next(mapping)) {
        was_mapped |= mapping->prot != 0;
    }
    if (was_mapped) {
        remains_include(&from, &to);
        before = cost_around(from, to);
        set_prot(start, end, 0);
        (void)withdraw(from, to, before);
    }
    while ((mapping = sim_mapping_from(start)) != NULL && mapping->range.start < end) {
        forget(mapping);
    }
}

bool sim_mapping_allows(const struct sim_mapping *mapping, const struct sim_device *device,
                        bool write)
{
    uint64_t devices = write ? mapping->writers : mapping->readers;

    if ((devices >> device->ordinal & 1) != 0) {
        return true;
    }
    return mapping->kind == SIM_MAPPING_ALLOC &&
           sim_ctx_peers_enabled(device, mapping->chunk->device);
}
