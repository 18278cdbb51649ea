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

/* The cubin for a device of an architecture (90 for compute capability 9.0): that of the highest
 * one of the same major number which the device can run, or any, if there is none. False if the
 * container has no cubin. `size`: of the container and what follows; SIZE_MAX if it is not known,
 * then the container's own figure counts. */
bool sim_fatbin_choose(const void *data, size_t size, unsigned int arch,
                       struct sim_packed *ret_packed);
