#include "sim/driver/exec/meter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bounds.h"
#include "sim/driver/core/calls.h"
#include "sim/driver/core/control.h"
#include "sim/driver/core/device.h"
#include "sim/driver/core/export.h"
#include "sim/driver/core/lock.h"
#include "sim/driver/core/run_record.h"
#include "sim/driver/exec/period.h"
#include "sim/driver/exec/roofline.h"

/* The time that eager PyTorch needs for a launch: 6.5 us on the machine of an H100
 * (docs/dev/gpu.md). */
#define LAUNCH_NS 6500

static uint64_t host_ns, launching_ns; /* the host's time; the part for launches */

/* The sums of each device; NULL: nothing was launched on it. */
static struct counted {
    struct sim_period period;
    struct sim_record_step sums; /* of all work so far */
    uint64_t end_ns;
} * devices[SPW_DEVICES_MAX];

static struct counted *counted_of(int ordinal)
{
    if (devices[ordinal] == NULL) {
        devices[ordinal] = calloc(1, sizeof(*devices[ordinal]));
    }
    return devices[ordinal];
}

static void wait_for(uint64_t *ns, uint64_t end_ns)
{
    *ns = *ns > end_ns ? *ns : end_ns;
}

/* Returns true for kernels and fills. Further parts of a library's launch do not count. */
static bool is_work(const struct sim_op *op)
{
    return (op->class->node_type == CU_GRAPH_NODE_TYPE_KERNEL ||
            op->class->node_type == CU_GRAPH_NODE_TYPE_MEMSET) &&
           op->demand.work != SIM_WORK_MORE;
}

static void log_estimate(const struct sim_op *op, const struct sim_demand *demand,
                         const struct sim_roofline *time)
{
    static const char *const words[SIM_WORKS] = {
        [SIM_WORK_NAMED] = "named",
        [SIM_WORK_PRODUCT] = "product",
        [SIM_WORK_UNALIGNED] = "unaligned",
        [SIM_WORK_CONVOLUTION] = "convolution",
        [SIM_WORK_CONVOLUTION_BACK] = "convolution_back",
        [SIM_WORK_GROUPED] = "grouped",
        [SIM_WORK_GROUPED_BACK] = "grouped_back",
        [SIM_WORK_ATTENTION] = "attention",
        [SIM_WORK_ELEMENTS] = "elements",
        [SIM_WORK_CASTS] = "casts",
        [SIM_WORK_RUNS] = "runs",
        [SIM_WORK_STRIDED] = "strided",
        [SIM_WORK_LISTS] = "lists",
        [SIM_WORK_REDUCTION] = "reduction",
        [SIM_WORK_ROWS] = "rows",
        [SIM_WORK_OTHER] = "other",
    };
    static char line[1024]; /* not on a stack, which may be small */

    if (sim_calls_logged()) {
        snprintf(line, sizeof(line),
                 "  estimate %.0f ns: %s%s, %.0f ns operations, %.0f + %.0f ns bytes %s", time->ns,
                 words[demand->work], demand->guessed ? "?" : "", time->computing, time->moving,
                 time->besides, op->label != NULL ? op->label : op->class->name);
        sim_calls_log(line);
    }
}

void sim_meter_launched(const struct sim_op *op)
{
    if (is_work(op) || op->class->node_type == CU_GRAPH_NODE_TYPE_MEMCPY) {
        host_ns += LAUNCH_NS;
        launching_ns += LAUNCH_NS;
    }
}

/* Adds the work of a kernel or a fill. */
static void add(struct counted *counted, const struct sim_demand *demand,
                const struct sim_roofline *time)
{
    struct sim_record_step *sums = &counted->sums;
    uint64_t ns = (uint64_t)time->ns;

    sums->busy_ns += ns;
    sums->sure_ns += demand->guessed ? 0 : ns;
    if (time->computing > time->moving) {
        sums->computing_ns[demand->type] += (uint64_t)time->computing;
        sums->moving_ns += (uint64_t)time->besides;
    } else {
        sums->moving_ns += (uint64_t)(time->moving + time->besides);
    }
}

void sim_meter_submitted(struct sim_stream *stream, const struct sim_op *op)
{
    struct counted *counted = is_work(op) ? counted_of(op->device) : NULL;
    struct sim_demand demand;
    struct sim_roofline time;

    if (counted == NULL) {
        return;
    }
    demand = sim_op_demand(op);
    time = sim_roofline_of(&demand, sim_device_get(op->device)->profile);
    log_estimate(op, &demand, &time);
    wait_for(&stream->metered_ns, host_ns);
    stream->metered_ns += (uint64_t)time.ns;
    wait_for(&counted->end_ns, stream->metered_ns);
    add(counted, &demand, &time);
    if (op->key == 0) {
        return;
    }
    counted->sums.ns = stream->metered_ns;
    counted->sums.host_ns = launching_ns;
    sim_period_add(&counted->period, op->key, &counted->sums);
    if (counted->period.step.launches > 0) {
        sim_run_record_step(op->device, &counted->period.step);
    }
}

SIM_EXPORT void spillway_sim_step(int ordinal, struct spillway_sim_step *ret_step)
{
    struct counted *counted;

    *ret_step = (struct spillway_sim_step){.kernels = 0};
    sim_lock();
    counted = sim_device_get(ordinal) != NULL ? devices[ordinal] : NULL;
    if (counted != NULL) {
        const struct sim_record_step *step = &counted->period.step;

        *ret_step =
            (struct spillway_sim_step){step->launches, step->ns, step->busy_ns, step->sure_ns};
        memset(&counted->period, 0, sizeof(counted->period));
    }
    sim_unlock();
}

void sim_meter_stream_waits(struct sim_stream *stream, uint64_t metered_ns)
{
    wait_for(&stream->metered_ns, metered_ns);
}

void sim_meter_host_waits(uint64_t metered_ns)
{
    wait_for(&host_ns, metered_ns);
}

void sim_meter_host_drains(int ordinal)
{
    if (devices[ordinal] != NULL) {
        wait_for(&host_ns, devices[ordinal]->end_ns);
    }
}
