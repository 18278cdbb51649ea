/* Functions that the simulated driver exports in addition to the cu* functions, for tests and for
 * spillway itself.
 *
 * Locking: thread-safe; the functions take the simulator's lock themselves. They may be called
 * before cuInit. */
#pragma once

#include <stdint.h>

/* Returns the version of this interface. A driver that exports this function is the simulated
 * one. */
int spillway_sim_version(void);

/* The host's virtual clock in nanoseconds; 0 without SPILLWAY_SIM_TIME. */
unsigned long long spillway_sim_time(void);

/* 1 with SPILLWAY_SIM_TIME, 0 without. */
int spillway_sim_has_time(void);

/* The simulated runtime calls this function to report that the program has allocated a block of
 * `bytes` bytes at `address`. 0 bytes mean that the block was freed. */
void spillway_sim_block(unsigned long long address, unsigned long long bytes);

/* Names another source of such reports, and takes the reports that it has. While *count is not 0,
 * the simulator calls `hand_over` before it looks for a block. `hand_over` calls `take` for each
 * report, in their order, and sets *count to 0. The simulator's lock is held, so `hand_over` must
 * not call the driver, and must not wait for a thread that calls the driver. */
void spillway_sim_blocks(const _Atomic uint64_t *count,
                         void (*hand_over)(void (*take)(unsigned long long address,
                                                        unsigned long long bytes)));

/* Number of calls so far of the function with that exported name; 0 for an unknown name. */
unsigned long long spillway_sim_calls(const char *name);

/* Returns the number of chunks that calls of a virtual memory function have covered so far.
 * *ret_bytes is set to the bytes of these chunks. */
unsigned long long spillway_sim_chunks(const char *name, unsigned long long *ret_bytes);

/* Finds a function of this driver by name, as cuGetProcAddress does, even if an interposed library
 * replaces the function. NVIDIA's libraries get driver functions this way. NULL if there is no such
 * function. */
void *spillway_sim_hidden(const char *name);

/* Sets all counts to 0. */
void spillway_sim_reset_calls(void);

/* Replaces the rules of SPILLWAY_SIM_FAIL, NAME:N[+][:CODE] separated by commas; N counts calls
 * from now on. NULL or "" removes all rules. Returns 0, or -1 if a rule is malformed; malformed
 * rules are named on stderr and left out. */
int spillway_sim_fail(const char *rules);

/* Returns the number of kernel launches so far. If `ret_checked` is not NULL, *ret_checked is set
 * to the number of launches whose addresses were checked. */
unsigned long long spillway_sim_launches(unsigned long long *ret_checked);

/* Numbers of launches. Each launch is counted under the source from which the layout of its
 * arguments is known. */
struct spillway_sim_layouts {
    unsigned long long unknown;
    unsigned long long builtin; /* built-in kernels and kernels of the simulated libraries, whose
                                 * touched ranges are known */
    unsigned long long ptx;     /* declarations in the module's PTX: the 64-bit parameters */
    unsigned long long
        name; /* the C++ types in the kernel's name: the pointers outside of structs */
    unsigned long long code;    /* the module's code: the pointers outside of structs */
    unsigned long long structs; /* the module's code, but all addresses are in structs and are not
                                 * checked */
};

/* Writes the numbers of the launches so far. */
void spillway_sim_layouts(struct spillway_sim_layouts *ret_launches);

/* Returns the bytes of host memory that currently hold the content of simulated memory. If
 * `ret_dropped` is not NULL, *ret_dropped is set to the bytes of the copies and fills so far that
 * moved no data because of SPILLWAY_SIM_PAYLOAD. */
unsigned long long spillway_sim_payload(unsigned long long *ret_dropped);

/* Returns the number of results of at most 4 KiB that the host has read so far, as counted in the
 * record of the run. If `ret_known` is not NULL, *ret_known is set to the number of these results
 * whose content was known. */
unsigned long long spillway_sim_reads(unsigned long long *ret_known);

/* 1 if the content of a range is known; otherwise 0. Known content is equal to the content on a
 * real GPU. Queued work is not considered, so callers must wait for their streams first. */
int spillway_sim_known(unsigned long long address, unsigned long long bytes);

/* An estimate of a step of the program on this card with ample memory. */
struct spillway_sim_step {
    unsigned long long kernels; /* 0: no step was found */
    unsigned long long ns;
    unsigned long long kernels_ns;       /* the time of its kernels */
    unsigned long long known_kernels_ns; /* of those whose shapes are known */
};

/* Writes the last step on the device of that ordinal, and forgets it: later launches are another
 * program's. */
void spillway_sim_step(int ordinal, struct spillway_sim_step *ret_step);

/* If this process is the only rank of a job that runs (SPILLWAY_SIM_WORLD), the number of ranks of
 * the job. Otherwise 0. */
unsigned int spillway_sim_world(void);

/* A device as the machine's monitoring shows it, independent of CUDA_VISIBLE_DEVICES. */
struct spillway_sim_device {
    const char *name;
    unsigned char uuid[16];
    int pci_bus; /* domain and device are 0 */
    int pci_device_id;
    int major, minor; /* compute capability */
    int clock_khz, memory_clock_khz;
    unsigned long long total_bytes;
    unsigned long long used_bytes; /* by all processes of the run; with one memory, also what
                                    * their host side takes */
    int one_memory;                /* the device has no memory of its own */
};

/* Writes the device of that index. Returns 0, or -1 if there is none. */
int spillway_sim_device(int index, struct spillway_sim_device *ret_device);

/* A process that holds memory of a device. */
struct spillway_sim_process {
    int pid;
    unsigned long long bytes;
};

/* Lists the processes of the run that hold memory of the device of that index. Returns their number
 * and writes the first `most`. */
int spillway_sim_processes(int index, struct spillway_sim_process *ret_list, int most);

/* The simulated cuDNN calls this function when it has named engines for a graph, for the device of
 * that ordinal. `guessed`: NVIDIA's cuDNN could not be asked. `search`: the program asks for the
 * engines that it needs only if it tries all of them. */
void spillway_sim_engines(int ordinal, int guessed, int search);

/* The simulated NCCL calls this function to report `count` new connections (enum
 * spw_gpu_connection) on the device of that ordinal, in a communicator of `ranks` ranks. A negative
 * count reports closed connections. Returns the number of bytes that the caller must allocate or
 * free for these connections. Without SPILLWAY_SIM_OVERHEAD, the number is always 0. */
unsigned long long spillway_sim_connection(int ordinal, int connection, int ranks, int count);

/* If the device shares the memory of the machine, returns the bytes of the machine, and writes the
 * bytes that the processes of the run leave free now. Returns 0 if there is no such device, or if
 * it has memory of its own. */
unsigned long long spillway_sim_one_memory(int ordinal, unsigned long long *ret_available);
