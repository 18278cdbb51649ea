/* Writes the call sites to the statistics file, with the memory that each held on each device.
 *
 * These functions also run at the end of the process. They allocate nothing, and take no lock that
 * could make them wait. If two threads write at once, one of them writes no symbols. */
#pragma once

#include "pool/accounts.h"
#include "system/write.h"

/* The most sites that are listed one by one. All other sites are added up. */
enum { SPW_CALLSITE_REPORT_MOST = 200 };

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
 * Native frames outside of the Python interpreter are omitted. Id 0 is memory whose stack is
 * unknown; its entry has only figures. Sites that are not listed are added up in one entry per
 * device, with "id": null and the number of sites as "sites". A module is {"path", "build_id"}. */

/* Writes the keys "sites" (device memory), "pinned_sites" (page-locked host memory, whose peak is
 * pinned_peak_bytes) and "modules", each with a comma before it. `charges` and `pinned` have one
 * entry per device, by ordinal. An entry without memory stands for a device without sites. */
void spw_callsite_report(struct spw_writer *writer, struct spw_charges *charges,
                         struct spw_charges *pinned, int devices);
