/* The simulator's lock: one mutex for everything.
 *
 * Every exported function takes it on entry (api/entry.h). Internal functions run with the lock
 * held unless their declaration states otherwise. A function that has to wait for another thread
 * calls sim_wait_progress(), which releases the lock while it waits. */
#pragma once

/* Take and release the lock. Entry points, the simulator's own threads and the functions of
 * control.h call them. */
void sim_lock(void);
void sim_unlock(void);

/* Waits until another thread calls sim_notify_progress(), but may return earlier. The lock must be
 * held on entry and is held on return. It is released during the wait, so the caller must check all
 * state again. */
void sim_wait_progress(void);

/* Wakes every thread in sim_wait_progress(). The lock is held. */
void sim_notify_progress(void);

/* Makes the lock usable in a child after fork, where the thread that held the lock may not exist.
 */
void sim_lock_reset_in_child(void);
