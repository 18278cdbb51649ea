/* The sites in the statistics file: who held the memory of each device.
 *
 * Written also at the end of somebody's process: no allocation, no lock that could wait. When two
 * threads write at once, one of them writes no symbols. */
#pragma once

#include "common/writer.h"
#include "pool/accounts.h"

enum { SPW_CALLSITE_REPORT_MOST = 200 }; /* sites named one by one; the rest is summed up */

/* One entry: {"id", "device", "live_bytes", "peak_bytes", "device_peak_bytes", "total_bytes",
 * "allocs", "frees", "api", "thread", "python": [{"file", "function", "line"}], "native":
 * [{"symbol", "library", "offset"}], "node"}. Frames are innermost first; `offset` is a return
 * address, from where the library is loaded; `symbol` is mangled, or null where the library exports
 * none; `node` is PyTorch's autograd node, or null; `device_peak_bytes` is what the site held when
 * the device held most, so that the sum over a device is its live_peak_bytes. Native frames end at
 * the interpreter where Python frames tell the rest. Id 0 is memory whose stack is not known, with
 * the figures only. What is not named one by one is an entry per device with "id": null and the
 * number of "sites". A module is {"path", "build_id"}. */

/* Writes the keys "sites" and "modules", each with a comma before it. `charges` are those of the
 * devices by ordinal; without any memory for them a device has no sites. */
void spw_callsite_report(struct spw_writer *writer, struct spw_charges *charges, int devices);
