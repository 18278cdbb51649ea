/* Estimates the time of the program's steps on a card, whether time is simulated or not.
 *
 * The estimate has a time of the host and a time of each stream. It does not influence the run. A
 * launch adds the time that PyTorch needs for it to the host's time. Its work begins when the host
 * has launched it and the work that it waits for has ended, and takes the time of the roofline
 * (roofline.h). If the host waits for work, its time is at least the end of this work. Copies that
 * cross the link are left out, as is memory that was moved to the host: the estimate is that of a
 * device with ample memory.
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
