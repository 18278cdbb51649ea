/* Answers to other processes: pauses, shares of a device, the memory of other processes. It does
 * not know driver functions.
 *
 *   control   the thread that answers `spillway pause` and `resume`
 *   nvml      the memory of a device that all processes use, from NVML
 *   part      pauses a part of the memory: a rule's, a call site's, a tag's
 *   pause     moves all memory to the host or to a file, and brings it back
 *   share     shares a device with other processes, by their weights
 *   state     the state of the folder in one object
 *   thread    starts threads of spillway's own
 *
 * `spillway pause PID` writes a request to the statistics that this process shares (stats/stats.h).
 * The thread sleeps until a request comes, with all signals blocked. It ends with the process, and
 * a child after fork has none until it uses a device. */
#pragma once

/* Starts the thread, once, unless SPILLWAY_CONTROL switches it off. Without the thread only the
 * requests of `spillway` fail. Any thread, no lock. */
void spw_service_control_start(void);

/* In a child after fork: there is no thread. */
void spw_service_control_forget(void);
