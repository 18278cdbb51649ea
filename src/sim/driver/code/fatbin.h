/* Fat binaries: the containers in which nvcc puts the code of a program, once for each
 * architecture.
 *
 * A container is a head and entries one behind the other, each with a head of its own, of 64 bytes
 * or more, and padded to a multiple of 8 bytes. The layout is taken from public projects that read
 * such containers and was compared with the output of nvcc 13.0. NVIDIA documents only the wrapper
 * around them (fatbinary_section.h of the toolkit).
 *
 * Offsets and sizes in a container are checked against its size before they are used.
 *
 * Locking: none; needs no lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The wrapper that a program built by nvcc holds: it points to the fat binary. */
#define SIM_FATBIN_WRAPPER_MAGIC 0x466243b1U

struct sim_fatbin_wrapper {
    uint32_t magic;
    uint32_t version;
    const void *data;
    void *file;
};

/* The head of a fat binary; the entries follow. */
#define SIM_FATBIN_MAGIC 0xba55ed50U

struct sim_fatbin_head {
    uint32_t magic;
    uint16_t version;
    uint16_t head_bytes;
    uint64_t payload_bytes;
};

/* How an entry is compressed. */
enum sim_packing { SIM_PACKING_NONE, SIM_PACKING_LZ4, SIM_PACKING_ZSTD };

/* A cubin in a fat binary. */
struct sim_packed {
    const unsigned char *data; /* in the fat binary */
    size_t bytes;
    size_t cubin_bytes; /* when it is unpacked */
    enum sim_packing packing;
};

/* The code of a container for a device. The rules are those of the CUDA programming guide, binary
 * and PTX compatibility: a cubin runs on its own compute capability and on later ones of the same
 * major number, one for a single architecture (sm_90a) nowhere else; PTX is compiled for any later
 * compute capability. A cubin that runs goes before PTX, and the latest of each before the others.
 * Architectures are numbers such as 90 for compute capability 9.0. */
struct sim_fatbin_choice {
    struct sim_packed
        cubin;           /* to read parameters from: the one that runs, else any; no data: none */
    bool runs;           /* some code suits the device, or the container's code is unknown */
    unsigned int binary; /* architecture of the code that runs; 0: unknown */
    unsigned int ptx;    /* architecture that it was compiled from; 0: unknown */
};

/* Chooses the code of a container for a device of an architecture. `size`: of the container and
 * what follows; SIZE_MAX if it is not known, then the container's own figure counts. */
struct sim_fatbin_choice sim_fatbin_choose(const void *data, size_t size, unsigned int arch);
