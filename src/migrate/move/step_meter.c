#include "migrate/move/step_meter.h"

#include "system/clock.h"

static struct spw_step_meter read_counters(struct spw_counters *counters, uint64_t events)
{
    return (struct spw_step_meter){.events = events,
                                   .ns = spw_clock_measured_ns(),
                                   .out_bytes = spw_counter_get(&counters->spilled_bytes) -
                                                spw_counter_get(&counters->placed_bytes),
                                   .in_bytes = spw_counter_get(&counters->promoted_bytes),
                                   .held_ns = spw_counter_get(&counters->closed_ns)};
}

/* The part of an amount that falls to one step, if `events` passed. */
static uint64_t for_a_step(uint64_t amount, uint64_t events, uint64_t period)
{
    return (uint64_t)((double)amount * (double)period / (double)events);
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
        spw_counter_set(&counters->step_ns, for_a_step(now.ns - meter->ns, passed, period));
        spw_counter_set(&counters->step_out_bytes,
                        for_a_step(now.out_bytes - meter->out_bytes, passed, period));
        spw_counter_set(&counters->step_in_bytes,
                        for_a_step(now.in_bytes - meter->in_bytes, passed, period));
        spw_counter_set(&counters->step_held_ns,
                        for_a_step(now.held_ns - meter->held_ns, passed, period));
    }
    *meter = period != 0 ? now : (struct spw_step_meter){0};
}
