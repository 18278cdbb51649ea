/* Two processes that share memory, and what both need: CUDA, memory, and pipes between them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <cuda.h>

#include "../check.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

/* A block on offer: the other process checks that it has the byte, and fills it with its
 * complement. */
struct offer {
    CUipcMemHandle handle;
    size_t bytes;
    int byte;
};

extern long number;      /* argument of the program */
extern const char *word; /* the next one, or "" */
extern pid_t other_pid;  /* of the second process, in the first one */

/* Makes the primary context of a device current. */
void enter(int ordinal);

/* Memory and handles, by the driver or by the runtime. The last three return the error. */
CUdeviceptr allocate(size_t bytes);
int get(CUipcMemHandle *handle, CUdeviceptr address);
int open_handle(CUdeviceptr *address, const CUipcMemHandle *handle);
int close_address(CUdeviceptr address);

/* Fills a range and waits; and tells if every byte of it has a value. */
void fill(CUdeviceptr address, size_t bytes, int byte);
bool has(CUdeviceptr address, size_t bytes, int byte);

/* Free memory of the device, after all work. */
size_t free_bytes(void);

/* What the process has open, and lines of a file, with a word or all. */
int count_fds(void);
int count_lines(const char *path, const char *word);

/* Talk to the other process. receive is false, and hear is 0, when it has ended. */
void send_to_other(const void *data, size_t bytes);
bool receive(void *data, size_t bytes);
void say(char letter);
char hear(void);

/* Offers a block from an address inside it, and waits until the other has taken it. */
void offer(CUdeviceptr address, size_t bytes, size_t offset, int byte);

/* Takes offers until there are none: opens, checks, fills, closes. Returns their number. */
long take_offers(void);

/* Start the program a second time, with pipes to it; in it, `arguments` are main's. Wait for its
 * end, which must be a good one. */
void start_other(const char *program, const char *way);
void become_other(const char *descriptor);
void end_other(void);
