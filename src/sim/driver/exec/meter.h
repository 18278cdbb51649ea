/* Estimates the time of the program's steps on a card, whether time is simulated or not.
 *
 * The estimate has one time for the host and one for each stream. It does not influence the run.
 * Each launch adds the launch time of PyTorch to the host's time. The work begins when the host has
 * launched it and all earlier work that it waits for has ended. It takes the time of the roofline
 * (roofline.h). If the host waits for work, its time becomes at least the end of this work. The
 * estimate is for a device with ample memory, so copies over the link and memory on the host do not
 * count.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include "sim/driver/exec/op.h"
#include "sim/driver/exec/stream.h"

/* The host launches an operation. */
void sim_meter_launched(const struct sim_op *op);

/* An operation was submitted to a stream. */
void sim_meter_submitted(struct sim_stream *stream, const struct sim_op *op);

/* A stream, or the host, waits for a moment of a stream's time (stream->metered_ns). */
void sim_meter_stream_waits(struct sim_stream *stream, uint64_t metered_ns);
void sim_meter_host_waits(uint64_t metered_ns);

/* The host waits for all work of a device. */
void sim_meter_host_drains(int ordinal);
