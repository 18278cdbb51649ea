#include "torch/figures.h"

#include "device/device.h"

static struct spw_torch_device *const devices = spw_torch.devices;

static size_t offset_of(const struct spw_torch_row *row, enum spw_torch_figure figure)
{
    switch (figure) {
    case SPW_TORCH_ALLOCATION:
        return offsetof(struct spw_torch_figures, allocation);
    case SPW_TORCH_ACTIVE:
        return offsetof(struct spw_torch_figures, active);
    case SPW_TORCH_ALLOCATED_BYTES:
        return offsetof(struct spw_torch_figures, allocated_bytes);
    case SPW_TORCH_ACTIVE_BYTES:
        return row->active_bytes;
    default:
        return row->requested_bytes;
    }
}

static inline void raise_peak(int device, enum spw_torch_figure figure, int kind)
{
    struct spw_torch_stat *stat = &devices[device].own[figure][kind];
    int64_t sum = stat->current + devices[device].native[figure][kind];

    stat->peak = sum > stat->peak ? sum : stat->peak;
}

/* One tensor in the figures, in their order. */
struct change {
    int64_t by[SPW_TORCH_FIGURES];
    int kind;
};

static inline struct change change_of(uint64_t bytes, uint64_t asked)
{
    return (struct change){.by = {1, (int64_t)bytes, (int64_t)asked, 1, (int64_t)bytes},
                           .kind =
                               bytes <= SPW_TORCH_SMALL_MOST ? SPW_TORCH_SMALL : SPW_TORCH_LARGE};
}

/* Every allocation runs through the next two functions. They are inlined with constant bounds, so
 * that the loops have no counter. */
static inline void count_up(int device, int kind, const struct change *change)
{
#pragma GCC unroll 8
    for (int figure = 0; figure < SPW_TORCH_FIGURES; figure++) {
        struct spw_torch_stat *stat = &devices[device].own[figure][kind];

        stat->current += change->by[figure];
        stat->allocated += change->by[figure];
        raise_peak(device, figure, kind);
    }
}

static inline void count_down(int device, int kind, const struct change *change, int first, int end)
{
#pragma GCC unroll 8
    for (int figure = first; figure < end; figure++) {
        struct spw_torch_stat *stat = &devices[device].own[figure][kind];

        stat->current -= change->by[figure];
        stat->freed += change->by[figure];
    }
}

void spw_torch_figures_new(int device, uint64_t bytes, uint64_t asked)
{
    const struct change change = change_of(bytes, asked);

    count_up(device, SPW_TORCH_ALL, &change);
    count_up(device, change.kind, &change);
}

void spw_torch_figures_freed(int device, uint64_t bytes, uint64_t asked)
{
    const struct change change = change_of(bytes, asked);

    count_down(device, SPW_TORCH_ALL, &change, 0, SPW_TORCH_ACTIVE);
    count_down(device, change.kind, &change, 0, SPW_TORCH_ACTIVE);
}

void spw_torch_figures_inactive(int device, uint64_t bytes)
{
    const struct change change = change_of(bytes, 0);

    count_down(device, SPW_TORCH_ALL, &change, SPW_TORCH_ACTIVE, SPW_TORCH_FIGURES);
    count_down(device, change.kind, &change, SPW_TORCH_ACTIVE, SPW_TORCH_FIGURES);
}

static int64_t of_both(int device, enum spw_torch_figure figure)
{
    return devices[device].own[figure][SPW_TORCH_ALL].current +
           devices[device].native[figure][SPW_TORCH_ALL];
}

uint64_t spw_torch_figures_allocated(int device)
{
    return (uint64_t)of_both(device, SPW_TORCH_ALLOCATED_BYTES);
}

uint64_t spw_torch_figures_below_peak(int device)
{
    int64_t below = devices[device].own[SPW_TORCH_ALLOCATED_BYTES][SPW_TORCH_ALL].peak -
                    of_both(device, SPW_TORCH_ALLOCATED_BYTES);

    return below > 0 ? (uint64_t)below : 0;
}

uint64_t spw_torch_figures_reserved(int device)
{
    const struct spw_counters *c = spw_device_at(device)->counters;
    uint64_t reserved = spw_counter_get(&c->committed_bytes) + spw_counter_get(&c->host_used_bytes);
    uint64_t least = spw_torch_figures_allocated(device);

    return reserved > least ? reserved : least;
}

uint64_t spw_torch_figures_idle(int device)
{
    int64_t idle = devices[device].native_reserved -
                   devices[device].native[SPW_TORCH_ACTIVE_BYTES][SPW_TORCH_ALL];

    return idle > 0 ? (uint64_t)idle : 0;
}

void spw_torch_figures_native(const struct spw_torch_row *row, int device, const void *native)
{
    devices[device].native_reserved =
        ((const struct spw_torch_figures *)native)->reserved_bytes[SPW_TORCH_ALL].current;
    for (int figure = 0; figure < SPW_TORCH_FIGURES; figure++) {
        const struct spw_torch_stat *stats =
            (const void *)((const char *)native + offset_of(row, figure));

        for (int kind = 0; kind < SPW_TORCH_KINDS; kind++) {
            devices[device].native[figure][kind] = stats[kind].current;
            raise_peak(device, figure, kind);
        }
    }
}

static void add_reserved(int device, struct spw_torch_stat *stats)
{
    struct spw_torch_stat *stat = &devices[device].reserved;
    const struct spw_counters *c = spw_device_at(device)->counters;
    int64_t now = (int64_t)spw_torch_figures_reserved(device);
    int64_t peak = (int64_t)spw_counter_get(&c->reserved_peak_bytes);
    int64_t least = devices[device].own[SPW_TORCH_ALLOCATED_BYTES][SPW_TORCH_ALL].peak;

    /* The sums add up the changes between two calls. */
    stat->allocated += now > stat->current ? now - stat->current : 0;
    stat->freed += now < stat->current ? stat->current - now : 0;
    stat->current = now;
    stat->peak = peak > least ? peak : least;
    stat->peak = stat->peak > now ? stat->peak : now;
    stats[SPW_TORCH_ALL] = *stat;
    stats[SPW_TORCH_LARGE] = *stat;
    stats[SPW_TORCH_SMALL] = (struct spw_torch_stat){0, 0, 0, 0};
}

static int64_t calls_of(int device, enum spw_own_call call)
{
    const struct spw_driver *driver = spw_process_driver();

    return driver->calls[device] != NULL ? (int64_t)atomic_load(&driver->calls[device][call]) : 0;
}

/* The chunks of the pool count as segments. Driver calls that create and release chunks count as
 * PyTorch's calls for device memory. */
static void add_chunks(const struct spw_torch_row *row, int device, void *native)
{
    struct spw_torch_stat *segments = ((struct spw_torch_figures *)native)->segment;
    int64_t made = calls_of(device, SPW_CALL_cuMemCreate) - devices[device].chunks_seen[0];
    int64_t gone = calls_of(device, SPW_CALL_cuMemRelease) - devices[device].chunks_seen[1];
    int64_t now = calls_of(device, SPW_CALL_cuMemCreate) - calls_of(device, SPW_CALL_cuMemRelease);

    if (now > devices[device].chunks_peak) {
        devices[device].chunks_peak = now;
    }
    for (int kind = SPW_TORCH_ALL; kind < SPW_TORCH_KINDS; kind += SPW_TORCH_LARGE) {
        segments[kind].current += now;
        segments[kind].peak += devices[device].chunks_peak;
        segments[kind].allocated += made;
        segments[kind].freed += gone;
    }
    *(int64_t *)((char *)native + row->device_allocs) += made;
    *(int64_t *)((char *)native + row->device_frees) += gone;
}

void spw_torch_figures_add(const struct spw_torch_row *row, int device, void *native)
{
    if (device >= spw_device_count() || spw_device_at(device)->counters == NULL) {
        return;
    }
    spw_torch_figures_native(row, device, native);
    for (int figure = 0; figure < SPW_TORCH_FIGURES; figure++) {
        struct spw_torch_stat *stats = (void *)((char *)native + offset_of(row, figure));

        for (int kind = 0; kind < SPW_TORCH_KINDS; kind++) {
            const struct spw_torch_stat *own = &devices[device].own[figure][kind];

            stats[kind].current += own->current;
            stats[kind].peak = own->peak;
            stats[kind].allocated += own->allocated;
            stats[kind].freed += own->freed;
        }
    }
    add_reserved(device, ((struct spw_torch_figures *)native)->reserved_bytes);
    add_chunks(row, device, native);
}

void spw_torch_figures_reset_peaks(int device)
{
    for (int figure = 0; figure < SPW_TORCH_FIGURES; figure++) {
        for (int kind = 0; kind < SPW_TORCH_KINDS; kind++) {
            devices[device].own[figure][kind].peak = 0;
            raise_peak(device, figure, kind);
        }
    }
    devices[device].chunks_peak = 0;
}

void spw_torch_figures_reset_accumulated(int device)
{
    for (int figure = 0; figure < SPW_TORCH_FIGURES; figure++) {
        for (int kind = 0; kind < SPW_TORCH_KINDS; kind++) {
            devices[device].own[figure][kind].allocated = 0;
            devices[device].own[figure][kind].freed = 0;
        }
    }
    devices[device].reserved.allocated = devices[device].reserved.current;
    devices[device].reserved.freed = 0;
    devices[device].chunks_seen[0] = calls_of(device, SPW_CALL_cuMemCreate);
    devices[device].chunks_seen[1] = calls_of(device, SPW_CALL_cuMemRelease);
}
