/* Lets other processes pause this one: `spillway pause PID` writes a request to the statistics that
 * it shares (stats/stats.h), and a thread of ours answers it.
 *
 * The thread sleeps until then, with all signals blocked. It ends with the process, and a child
 * after fork has none until it uses a device. */
#pragma once

/* Starts the thread, once, unless SPILLWAY_CONTROL switches it off. Without the thread only these
 * requests fail. Any thread, no lock. */
void spw_service_control_start(void);

/* In a child after fork: there is no thread. */
void spw_service_control_forget(void);
