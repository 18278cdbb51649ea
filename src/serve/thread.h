/* Threads of spillway's own in the program's process. */
#pragma once

/* Starts a detached thread in which all signals are blocked, so that none of the program's reaches
 * it. Nothing happens when the process cannot have one. `run` must not return before the process
 * ends. No lock. */
void spw_serve_thread_start(void *(*run)(void *argument), void *argument);
