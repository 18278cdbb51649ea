/* Writes the call sites to the statistics file: who held the memory of each device.
 *
 * It also runs at the end of the process, so it neither allocates nor takes a lock that could wait.
 * When two threads write at once, one of them writes no symbols. */
#pragma once

#include "pool/accounts.h"
#include "system/write.h"

enum { SPW_CALLSITE_REPORT_MOST = 200 }; /* sites listed one by one; all others are summed up */

/* One entry: {"id", "device", "live_bytes", "peak_bytes", "device_peak_bytes", "total_bytes",
 * "allocs", "frees", "api", "thread", "python": [{"file", "function", "line"}], "native":
 * [{"symbol", "library", "offset"}], "node"}. Frames are innermost first.
 *
 *     device_peak_bytes  held by the site when the device held most; those of one device add up to
 *                        its live_peak_bytes
 *     symbol             the mangled name; null where the library exports none
 *     offset             return address, relative to the library's load address
 *     node               PyTorch's autograd node, or null
 *
 * Native frames outside of the Python interpreter are left out. Id 0 is memory whose stack is not
 * known; it has only figures. Sites that are not listed are summed up in one entry per device, with
 * "id": null and their number as "sites". A module is {"path", "build_id"}. */

/* Writes the keys "sites" (device memory), "pinned_sites" (page-locked host memory, whose peak is
 * pinned_peak_bytes) and "modules", each with a comma before it. `charges` and `pinned` have one
 * entry per device, by ordinal; an entry without memory stands for a device without sites. */
void spw_callsite_report(struct spw_writer *writer, struct spw_charges *charges,
                         struct spw_charges *pinned, int devices);
