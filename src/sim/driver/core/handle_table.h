/* Handles of streams, events, modules, graphs: opaque, checked, and recycled.
 *
 * A handle is the address of a slot that is never freed, so the lookup of any value is safe. The
 * slot that was destroyed last is reused first, so a program that uses a destroyed handle soon
 * reaches another object, as with a real driver.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

enum sim_handle_kind {
    SIM_HANDLE_STREAM,
    SIM_HANDLE_EVENT,
    SIM_HANDLE_MODULE,
    SIM_HANDLE_FUNCTION,
    SIM_HANDLE_LIBRARY,
    SIM_HANDLE_KERNEL,
    SIM_HANDLE_LINK,
    SIM_HANDLE_GRAPH,
    SIM_HANDLE_NODE,
    SIM_HANDLE_EXEC,
    SIM_HANDLE_USER_OBJECT,
    SIM_HANDLE_RESOURCE,
    SIM_HANDLE_GREEN,
    SIM_HANDLE_KIND_COUNT
};

/* Creates a handle for `object`, which must not be NULL. The caller keeps ownership of the object.
 * NULL if host memory is exhausted. */
void *sim_handle_create(enum sim_handle_kind kind, void *object);

/* The object of a live handle of that kind; NULL for any other value. */
void *sim_handle_object(enum sim_handle_kind kind, const void *handle);

/* Invalidates a live handle. NULL is ignored. */
void sim_handle_destroy(enum sim_handle_kind kind, void *handle);
