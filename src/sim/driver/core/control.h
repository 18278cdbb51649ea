/* Functions that the simulated driver exports beside the cu* functions, for tests and for spillway
 * itself.
 *
 * Thread-safe; callable before cuInit; they take the simulator's lock themselves. */
#pragma once

/* Returns the version of this interface. A driver that exports this function is the simulated
 * one. */
int spillway_sim_version(void);

/* The host's virtual clock in nanoseconds, with SPILLWAY_SIM_TIME; else 0. */
unsigned long long spillway_sim_time(void);

/* 1 with SPILLWAY_SIM_TIME, else 0. */
int spillway_sim_has_time(void);

/* Called by the simulated runtime: the program has a block of `bytes` at `address`, or with 0 has
 * it no longer. */
void spillway_sim_block(unsigned long long address, unsigned long long bytes);

/* Calls of the function of that exported name so far; 0 for an unknown name. */
unsigned long long spillway_sim_calls(const char *name);

/* Chunks that calls of a function on virtual memory have covered so far; *ret_bytes: their bytes.
 */
unsigned long long spillway_sim_chunks(const char *name, unsigned long long *ret_bytes);

/* The function that cuGetProcAddress would find by that name, without anything that stands in front
 * of the driver: as libraries of NVIDIA's get functions that no program can intercept. NULL: there
 * is none. */
void *spillway_sim_hidden(const char *name);

/* Sets all counts to 0. */
void spillway_sim_reset_calls(void);

/* Replaces the rules of SPILLWAY_SIM_FAIL, NAME:N[+][:CODE] separated by commas; N counts calls
 * from now on. NULL or "" for none. 0, or -1 if a rule is malformed (named on stderr, left out). */
int spillway_sim_fail(const char *rules);

/* Number of kernel launches so far; *ret_checked, if not NULL: of those whose addresses were
 * checked. */
unsigned long long spillway_sim_launches(unsigned long long *ret_checked);

/* Numbers of launches, by the source of the layout of their arguments. */
struct spillway_sim_layouts {
    unsigned long long unknown;
    unsigned long long builtin; /* built-in kernels, and what the libraries above the runtime
                                 * launch: with the extents that are touched */
    unsigned long long ptx;     /* the module was PTX: 64-bit parameters */
    unsigned long long name;    /* the C++ types in the kernel's name: pointers, not in structs */
    unsigned long long code;    /* the module's code: pointers, not in structs */
    unsigned long long structs; /* likewise, but there are only structs, which are not checked */
};

/* Launches so far, by the source of the layout of their arguments. */
void spillway_sim_layouts(struct spillway_sim_layouts *ret_launches);

/* Bytes of host memory that the content of simulated memory takes now; *ret_dropped, if not NULL:
 * bytes of copies and fills so far that moved no data because of SPILLWAY_SIM_PAYLOAD. */
unsigned long long spillway_sim_payload(unsigned long long *ret_dropped);

/* Results of at most 4 KiB that the host has read so far, as the record of a run counts them;
 * *ret_known, if not NULL: of those, the ones whose content is known. */
unsigned long long spillway_sim_reads(unsigned long long *ret_known);

/* 1 if the content of a range is what the same program would have there on a GPU, else 0. It says
 * so of what the work that was executed has left: callers wait for their streams first. */
int spillway_sim_known(unsigned long long address, unsigned long long bytes);

/* The number of ranks of the job of which this process is the only one that runs
 * (SPILLWAY_SIM_WORLD); 0: there is no such job. */
unsigned int spillway_sim_world(void);

/* A device as the machine's monitoring shows it, whether this process may see it or not
 * (CUDA_VISIBLE_DEVICES). */
struct spillway_sim_device {
    const char *name;
    unsigned char uuid[16];
    int pci_bus; /* domain and device are 0 */
    int pci_device_id;
    int major, minor; /* compute capability */
    int clock_khz, memory_clock_khz;
    unsigned long long total_bytes;
    unsigned long long used_bytes; /* by all processes of the run */
};

/* The device of that index; 0, or -1 if there is none. */
int spillway_sim_device(int index, struct spillway_sim_device *ret_device);

/* A process that holds memory of a device. */
struct spillway_sim_process {
    int pid;
    unsigned long long bytes;
};

/* Lists the processes of the run that hold memory of the device of that index: there are as many as
 * it returns, and the first `most` of them are written. */
int spillway_sim_processes(int index, struct spillway_sim_process *ret_list, int most);

/* Called by the simulated NCCL: on the device of that ordinal, a card would hold memory for `count`
 * more of a part (enum spw_gpu_connection) of a communicator of so many ranks; for fewer, if
 * `count` is negative. Returns the bytes that the caller is to allocate for it, or has to free: 0
 * unless devices hold what a card does (SPILLWAY_SIM_OVERHEAD). */
unsigned long long spillway_sim_connection(int ordinal, int connection, int ranks, int count);
