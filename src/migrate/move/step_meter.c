#include "migrate/move/step_meter.h"

#include "system/clock.h"

static struct spw_step_meter read_counters(struct spw_counters *counters, uint64_t events)
{
    uint64_t out = spw_counter_get(&counters->spilled_bytes),
             placed = spw_counter_get(&counters->placed_bytes);

    return (struct spw_step_meter){.events = events,
                                   .ns = spw_clock_measured_ns(),
                                   .out_bytes = out > placed ? out - placed : 0,
                                   .in_bytes = spw_counter_get(&counters->promoted_bytes),
                                   .held_ns = spw_counter_get(&counters->closed_ns)};
}

/* Sets a counter to the part of an amount that falls to one step. Another thread may add to the
 * counters while they are read, so the amount may seem to fall. */
static void set_for_a_step(_Atomic uint64_t *counter, uint64_t before, uint64_t now, double share)
{
    spw_counter_set(counter, now > before ? (uint64_t)((double)(now - before) * share) : 0);
}

void spw_migrate_step_meter_look(struct spw_step_meter *meter, struct spw_counters *counters,
                                 uint64_t events, uint64_t period)
{
    uint64_t passed = events - meter->events;
    struct spw_step_meter now;

    if (meter->ns != 0 && period != 0 && passed < period) {
        return;
    }
    now = read_counters(counters, events);
    if (meter->ns != 0 && period != 0) {
        double share = (double)period / (double)passed;

        set_for_a_step(&counters->step_ns, meter->ns, now.ns, share);
        set_for_a_step(&counters->step_out_bytes, meter->out_bytes, now.out_bytes, share);
        set_for_a_step(&counters->step_in_bytes, meter->in_bytes, now.in_bytes, share);
        set_for_a_step(&counters->step_held_ns, meter->held_ns, now.held_ns, share);
    }
    *meter = period != 0 ? now : (struct spw_step_meter){0};
}
