/* The tests of ipc.c: each has a half for the process that owns the memory and starts the other,
 * and one for the other. */
#pragma once

struct way {
    const char *name;
    void (*owner)(void);
    void (*other)(void);
};

/* Of ipc_hard.c and ipc_odd.c; the last one has no name. */
extern const struct way hard_ways[], odd_ways[];
