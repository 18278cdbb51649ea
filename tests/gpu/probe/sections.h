/* The sections. Each leaves the device as it found it, or ends the process. `argument` is the word
 * behind the section's name, or NULL. */
#pragma once

/* Does the device answer, and compute? */
void section_alive(const char *argument);
/* Attributes, granularities, address space. */
void section_facts(const char *argument);
/* Host memory at a NUMA node, or "host" for no node in particular. May crash in the driver. */
void section_host_node(const char *argument);
/* Copies that touch a device chunk, a host chunk, or both: HtoD, DtoH, DtoD, any, memset, 2D. */
void section_crossing(const char *argument);
/* Set-access on memory that is accessible and in use. */
void section_in_use(const char *argument);
/* cuCtxRecordEvent: cost and meaning. */
void section_record_event(const char *argument);
/* Calls of another thread beside a capture. */
void section_capture(const char *argument);
/* The move of 512 MiB, in chunks of so many MiB, by staging or with "kept" second mappings. */
void section_move(const char *argument);
/* The cost of each call by size, of device or host chunks, or host chunks at another place
 * (memory_find_host_at). */
void section_primitives(const char *argument);
/* The cost of calls on ranges of several chunks: device, host or mixed. */
void section_ranges(const char *argument);
/* Calls beside a running kernel or a running copy. */
void section_beside_kernel(const char *argument);
void section_beside_copy(const char *argument);
/* Read-only access: read, set or write. A write is expected to fault. */
void section_read_only(const char *argument);
/* One address on two tiers. */
void section_tiers(const char *argument);
/* Bandwidth of kernels' reads and of copies, by tier and direction. */
void section_link(const char *argument);
/* Atomics, reductions, bulk copies on host chunks. */
void section_instructions(const char *argument);
/* All of the device's memory in chunks of so many MiB. */
void section_fill_card(const char *argument);
/* Host chunks of so many MiB up to half of the available memory: numa, host or locked. */
void section_host_chunks(const char *argument);
/* The cost of small calls. */
void section_calls(const char *argument);
/* Questions about kernels and their parameters, before their first launch. */
void section_params(const char *argument);
/* The loud move: unmap the home address, copy through the alias, map back. */
void section_unmap_then_copy(const char *argument);
/* Launches of one thread beside another that maps and sets access. */
void section_launch_beside(const char *argument);
/* read-unmapped, write-unmapped, read-evicted, write-evicted or beneath: a fault, and what the
 * calls after it say. */
void section_fault(const char *argument);
/* Kernels whose operands lie on the host. */
void section_in_place(const char *argument);
/* Ways to wait for a copy. */
void section_poll(const char *argument);
/* Copies of pieces in and out, alone and beside a kernel. */
void section_both_ways(const char *argument);
/* Copies by how the host's pages were made: "registered", or a place of chunks. */
void section_host_pages(const char *argument);
/* Managed memory, moved by prefetches. */
void section_managed(const char *argument);
/* Launches of kernels and graphs. */
void section_launch_cost(const char *argument);
/* Kernels, memset and memcpy by size. */
void section_curves(const char *argument);
