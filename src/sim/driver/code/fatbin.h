/* Fat binaries: nvcc's containers for the code of a program, compiled for several architectures.
 *
 * A container consists of a header and a sequence of entries. Each entry has a header of at least
 * 64 bytes and is padded to a multiple of 8 bytes. The layout was taken from public projects that
 * read such containers, and was checked against the output of nvcc 13.0. NVIDIA documents only the
 * wrapper around a container (fatbinary_section.h of the toolkit).
 *
 * Offsets and sizes in a container are checked against the size of the container before they are
 * used.
 *
 * Locking: none; needs no lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The wrapper in a program built by nvcc, which points to the fat binary. */
#define SIM_FATBIN_WRAPPER_MAGIC 0x466243b1U

struct sim_fatbin_wrapper {
    uint32_t magic;
    uint32_t version;
    const void *data;
    void *file;
};

/* The header of a fat binary. The entries follow the header. */
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
    size_t cubin_bytes; /* size after unpacking */
    enum sim_packing packing;
};

/* The code that a device uses from a container, chosen by the CUDA programming guide's rules for
 * binary and PTX compatibility. A cubin runs on its own compute capability and on later ones of the
 * same major number; a cubin for a single architecture (sm_90a) runs only on that one. PTX is
 * compiled for its own or any later compute capability. A cubin that runs is preferred to PTX. Code
 * for a later architecture is preferred to code of the same format for an earlier one.
 * Architectures are numbers such as 90 for compute capability 9.0. */
struct sim_fatbin_choice {
    struct sim_packed cubin; /* source of the kernels' parameters: a cubin that runs, if there is
                              * one; without data if the container has no cubin */
    bool runs;               /* the device can run some of the code, or the code is unknown */
    unsigned int binary;     /* architecture of the code that runs; 0: unknown */
    unsigned int ptx;        /* architecture that this code was compiled from; 0: unknown */
};

/* Chooses the code of a container for a device of the given architecture. `size`: the bytes of the
 * container and of any data behind it. If `size` is SIZE_MAX, the size in the container's header is
 * used. */
struct sim_fatbin_choice sim_fatbin_choose(const void *data, size_t size, unsigned int arch);
