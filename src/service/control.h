/* Answers to other processes: pauses, shares of a device, the memory of other processes. It does
 * not know driver functions.
 *
 *   control   the thread that answers `spillway pause` and `resume`
 *   nvml      the memory of a device that all processes use, from NVML
 *   part      the memory of one rule, call site or tag, which can be paused alone
 *   pause     moves all memory to the host or to a file, and brings it back
 *   share     shares a device with other processes, by their weights
 *   state     the state of the folder in one object
 *   thread    starts threads of spillway's own
 *
 * `spillway pause PID` writes a request to the statistics, which are in shared memory
 * (stats/stats.h). The thread sleeps until a request arrives, with all signals blocked. The thread
 * ends with the process. A child after fork has no such thread until the child uses a device. */
#pragma once

/* Starts the thread once, unless SPILLWAY_CONTROL switches it off. Without the thread, requests of
 * the command `spillway` fail; everything in the process works as usual. Any thread, no lock. */
void spw_service_control_start(void);

/* In a child after fork: records that there is no thread. */
void spw_service_control_forget(void);
