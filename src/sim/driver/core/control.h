/* Functions that the simulated driver exports beside the cu* functions, for tests and for spillway
 * itself.
 *
 * Thread-safe; callable before cuInit; they take the simulator's lock themselves. */
#pragma once

/* Returns the version of this interface. A driver that exports this function is the simulated
 * one. */
int spillway_sim_version(void);

/* The host's virtual clock in nanoseconds; 0 without SPILLWAY_SIM_TIME. */
unsigned long long spillway_sim_time(void);

/* 1 with SPILLWAY_SIM_TIME, 0 without. */
int spillway_sim_has_time(void);

/* The simulated runtime reports a block of the program: `bytes` at `address`; 0 bytes if the block
 * was freed. */
void spillway_sim_block(unsigned long long address, unsigned long long bytes);

/* Number of calls so far of the function with that exported name; 0 for an unknown name. */
unsigned long long spillway_sim_calls(const char *name);

/* Number of chunks that calls of a virtual memory function have covered so far; *ret_bytes: the
 * bytes of these chunks. */
unsigned long long spillway_sim_chunks(const char *name, unsigned long long *ret_bytes);

/* The function of this driver that cuGetProcAddress would find by that name, even if an interposed
 * library replaces the function. NVIDIA's libraries get driver functions this way. NULL: there is
 * none. */
void *spillway_sim_hidden(const char *name);

/* Sets all counts to 0. */
void spillway_sim_reset_calls(void);

/* Replaces the rules of SPILLWAY_SIM_FAIL, NAME:N[+][:CODE] separated by commas; N counts calls
 * from now on. NULL or "" removes all rules. Returns 0, or -1 if a rule is malformed; malformed
 * rules are named on stderr and left out. */
int spillway_sim_fail(const char *rules);

/* Number of kernel launches so far; *ret_checked, if not NULL: the launches whose addresses were
 * checked. */
unsigned long long spillway_sim_launches(unsigned long long *ret_checked);

/* Numbers of launches, by the source of the layout of their arguments. */
struct spillway_sim_layouts {
    unsigned long long unknown;
    unsigned long long builtin; /* kernels built in, or of the simulated libraries: the extents that
                                 * they touch are known */
    unsigned long long ptx;     /* the module was PTX: 64-bit parameters */
    unsigned long long
        name; /* the C++ types in the kernel's name: the pointers that are not in structs */
    unsigned long long code;    /* the module's code: the pointers that are not in structs */
    unsigned long long structs; /* the module's code: all addresses are in structs, not checked */
};

/* Launches so far, by the source of the layout of their arguments. */
void spillway_sim_layouts(struct spillway_sim_layouts *ret_launches);

/* Bytes of host memory that the content of simulated memory takes now; *ret_dropped, if not NULL:
 * bytes of the copies and fills so far that moved no data because of SPILLWAY_SIM_PAYLOAD. */
unsigned long long spillway_sim_payload(unsigned long long *ret_dropped);

/* Number of results of at most 4 KiB that the host has read so far, as the record of a run counts
 * them; *ret_known, if not NULL: the results whose content was known. */
unsigned long long spillway_sim_reads(unsigned long long *ret_known);

/* 1 if the content of a range is known, that is, equal to the content that the same program would
 * find there on a GPU; otherwise 0. Queued work is not considered, so callers wait for their
 * streams first. */
int spillway_sim_known(unsigned long long address, unsigned long long bytes);

/* The number of ranks of the job if only this process of the job runs (SPILLWAY_SIM_WORLD);
 * otherwise 0. */
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
    unsigned long long used_bytes; /* by all processes of the run */
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

/* The simulated NCCL reports `count` new connections (enum spw_gpu_connection) on the device of
 * that ordinal, in a communicator of `ranks`; a negative count reports closed connections. Returns
 * the bytes that the caller has to allocate or free for them: always 0 without
 * SPILLWAY_SIM_OVERHEAD. */
unsigned long long spillway_sim_connection(int ordinal, int connection, int ranks, int count);
