#include "sim/driver/exec/timing.h"

#include "common/bounds.h"
#include "common/minmax.h"
#include "sim/driver/core/clock.h"
#include "sim/driver/core/device.h"
#include "sim/driver/core/sim_options.h"
#include "sim/driver/exec/copy.h"
#include "sim/driver/exec/roofline.h"
#include "sim/driver/memory/content.h"

/* Bytes per microsecond; LINK_*: for each GB/s of the link's rate in that direction. */
#define LINK_RATE       1000    /* a copy engine */
#define LINK_READ_RATE  700     /* a kernel that reads the host's memory */
#define LINK_WRITE_RATE 1056    /* a kernel that writes it */
#define MEMORY_RATE     4300000 /* the device's memory */
#define PINNING_RATE    11800   /* 89 us a MiB: cuMemCreate at a host node, RTX 4050 */

#define KERNEL_LEAST_NS 2000

enum direction { TO_DEVICE, FROM_DEVICE, DIRECTIONS };

/* The time when each copy engine of each device becomes free. */
static uint64_t engines[SPW_DEVICES_MAX][DIRECTIONS];

static const struct cost {
    uint32_t ns;
    uint32_t per_mib; /* beyond the first granule of each chunk */
    bool listed;
} costs[SIM_FN_COUNT] = {
#define SIM_COST(function, cost_ns)                 [SIM_FN_##function] = {cost_ns, 0, true},
#define SIM_COST_CHUNKS(function, cost_ns, per_mib) [SIM_FN_##function] = {cost_ns, per_mib, true},
#define SIM_COST_PTSZ(function, cost_ns)                                                           \
    SIM_COST(function, cost_ns) SIM_COST(function##_ptsz, cost_ns)
#include "sim/driver/exec/costs.def"
#undef SIM_COST
#undef SIM_COST_CHUNKS
#undef SIM_COST_PTSZ
};

static const struct tier_cost {
    uint32_t ns;
    uint32_t per_mib; /* beyond the first granule of each chunk */
} tier_costs[SIM_FN_COUNT][2] = {
#define SIM_COST_TIERS(function, device_ns, device_per_mib, host_ns, host_per_mib)                 \
    [SIM_FN_##function] = {{device_ns, device_per_mib}, {host_ns, host_per_mib}},
#include "sim/driver/exec/costs_h100.def"
#undef SIM_COST_TIERS
};

/* True if the time of a call depends on the tiers of the chunks that it covers. */
static bool is_by_tier(enum sim_fn fn)
{
    return sim_options()->costs == SPW_COSTS_H100 && tier_costs[fn][0].ns > 0;
}

uint64_t sim_timing_of_call(enum sim_fn fn)
{
    if (!sim_clock_is_on()) {
        return SIM_STEP_NS;
    }
    if (is_by_tier(fn)) {
        return SIM_CALL_NS;
    }
    return costs[fn].listed ? costs[fn].ns : SIM_CALL_NS;
}

static uint64_t time_of(uint64_t ns, uint64_t per_mib, uint64_t chunks, uint64_t bytes)
{
    return chunks * ns + (bytes - chunks * SIM_GRANULE) / (1 << 20) * per_mib;
}

uint64_t sim_timing_of_chunks(enum sim_fn fn, const struct sim_covered *covered)
{
    const struct tier_cost *tiers = tier_costs[fn];

    if (!sim_clock_is_on() || sim_options()->costs == SPW_COSTS_RANGE || covered->chunks == 0) {
        return 0;
    }
    if (is_by_tier(fn)) {
        return time_of(tiers[0].ns, tiers[0].per_mib, covered->chunks - covered->host_chunks,
                       covered->bytes - covered->host_bytes) +
               time_of(tiers[1].ns, tiers[1].per_mib, covered->host_chunks, covered->host_bytes);
    }
    return time_of(costs[fn].ns, costs[fn].per_mib, covered->chunks, covered->bytes) - costs[fn].ns;
}

bool sim_timing_is_free(enum sim_fn fn)
{
    return costs[fn].listed && costs[fn].ns == 0;
}

/* Nanoseconds, rounded up. */
static uint64_t duration(uint64_t bytes, uint64_t rate)
{
    return (bytes * 1000 + rate - 1) / rate;
}

uint64_t sim_timing_of_pinning(uint64_t bytes)
{
    /* With costs by tier, the cost of cuMemCreate includes pinning. */
    return sim_clock_is_on() && !is_by_tier(SIM_FN_cuMemCreate) ? duration(bytes, PINNING_RATE) : 0;
}

static void add_use(struct sim_traffic *traffic, CUdeviceptr address, size_t size, bool write)
{
    uint64_t device_bytes, host_bytes;

    sim_mem_locate(address, size, &device_bytes, &host_bytes);
    traffic->device_bytes += device_bytes;
    *(write ? &traffic->out_bytes : &traffic->in_bytes) += host_bytes;
}

/* The traffic of an operation, from the memory that it names or is assumed to use. */
static struct sim_traffic traffic_of(const struct sim_op *op)
{
    struct sim_traffic traffic = {0};

    for (size_t i = 0; i < op->reach_count; i++) {
        add_use(&traffic, op->reaches[i].address, op->reaches[i].size, /* write */ false);
    }
    for (size_t i = 0; op->reaches == NULL && i < op->span_count; i++) {
        add_use(&traffic, op->spans[i].address, op->spans[i].size, op->spans[i].write);
    }
    return traffic;
}

/* The spans of a copy do not include pageable memory, but include the gaps between rows. */
static struct sim_traffic traffic_of_copy(const struct sim_op *op)
{
    const struct sim_copy *copy = sim_copy_of_op(op);
    uint64_t bytes = (uint64_t)copy->width * copy->height * copy->depth;
    struct sim_traffic named = traffic_of(op);
    struct sim_traffic traffic = {.in_bytes = named.in_bytes, .out_bytes = named.out_bytes};

    if (sim_mem_kind(copy->src.address) == SIM_MEM_PAGEABLE || traffic.in_bytes > bytes) {
        traffic.in_bytes = bytes;
    }
    if (sim_mem_kind(copy->dst.address) == SIM_MEM_PAGEABLE || traffic.out_bytes > bytes) {
        traffic.out_bytes = bytes;
    }
    traffic.device_bytes = 2 * bytes - traffic.in_bytes - traffic.out_bytes;
    return traffic;
}

/* The duration of a copy, without the wait for its engines. It is the time of the link or the time
 * of the device's memory, whichever is longer. */
static uint64_t copy_ns(const struct sim_traffic *traffic)
{
    uint64_t in_ns = duration(traffic->in_bytes, LINK_RATE * sim_options()->link);
    uint64_t out_ns = duration(traffic->out_bytes, LINK_RATE * sim_options()->link_out);

    return spw_max(spw_max(in_ns, out_ns), duration(traffic->device_bytes, MEMORY_RATE));
}

static struct sim_timing start_copy(const struct sim_op *op, uint64_t now)
{
    uint64_t *engine = engines[op->device];
    struct sim_timing timing = {.begin = now, .traffic = traffic_of_copy(op)};
    const bool uses[DIRECTIONS] = {
        [TO_DEVICE] = timing.traffic.in_bytes > 0, [FROM_DEVICE] = timing.traffic.out_bytes > 0};

    for (int i = 0; i < DIRECTIONS; i++) {
        if (uses[i] && engine[i] > timing.begin) {
            timing.begin = engine[i];
        }
    }
    timing.end = timing.begin + copy_ns(&timing.traffic);
    for (int i = 0; i < DIRECTIONS; i++) {
        if (uses[i]) {
            engine[i] = timing.end;
        }
    }
    return timing;
}

static uint64_t card_ns(const struct sim_op *op)
{
    struct sim_demand demand = sim_op_demand(op);

    return (uint64_t)sim_roofline_of(&demand, sim_device_get(op->device)->profile).ns;
}

static uint64_t kernel_ns(const struct sim_op *op, const struct sim_traffic *traffic)
{
    uint64_t ns = duration(traffic->device_bytes, MEMORY_RATE);

    if (sim_options()->rates == SPW_RATES_CARD) {
        ns = card_ns(op);
    } else if (op->nanoseconds > 0) {
        ns = op->nanoseconds;
    } else if (op->class->node_type == CU_GRAPH_NODE_TYPE_KERNEL && ns < KERNEL_LEAST_NS) {
        ns = KERNEL_LEAST_NS;
    }
    return ns + duration(traffic->in_bytes, LINK_READ_RATE * sim_options()->link) +
           duration(traffic->out_bytes, LINK_WRITE_RATE * sim_options()->link_out);
}

struct sim_timing sim_timing_start(const struct sim_op *op, uint64_t now)
{
    struct sim_timing timing = {.begin = now, .end = now};

    if (!sim_clock_is_on()) {
        return timing;
    }
    switch ((int)op->class->node_type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return start_copy(op, now);
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_MEMSET:
        timing.traffic = traffic_of(op);
        timing.end += kernel_ns(op, &timing.traffic);
        return timing;
    default:
        return timing;
    }
}
