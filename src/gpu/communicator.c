#include "gpu/communicator.h"

#include <string.h>

/* Default sizes, in MiB, from the source of NCCL 2.28.9 (the version of PyTorch 2.11). Each
 * allocation is rounded up to a granule of 2 MiB.
 *
 *   a channel     3 tables of peers, a granule each
 *   a connection  0.5 + 4.7 + 4 MiB to receive into, one buffer for each protocol (10 with
 *                 rounding), and a granule to send from
 *   a message     a connection and a granule: 3.28 GB were measured for 7 peers of 32 channels
 *                 (NVIDIA/nccl issue 1685)
 *   shared        16 pieces of 512 KiB for each channel for messages (128 KiB on PCIe), only where
 *                 ranks do not connect lazily (NVIDIA/nccl issue 2363)
 *   multicast     two buffers of 4 MiB for each of 16 channels and each rank, where an NVSwitch
 *                 reduces (capability 9.0 and higher); a collective may use it or not
 *
 * Checked against published measurements: docs/guide/simulator.md. */
enum {
    CHANNEL = 3 * 2,
    CONNECTION = 10 + 2,
    MESSAGE = CONNECTION + 2,
    SHARED_NVLINK = 8,
    SHARED_PCIE = 2,
    MULTICAST = 2 * 4 * 16,
};

struct channels {
    int collective, message;
    bool nvlink, published;
};

static const struct channels no_nvlink = {.collective = 4, .message = 4};

static const struct {
    const char *id;
    struct channels channels;
} rows[] = {
#define GUESS                                         false
#define PUBLISHED                                     true
#define SPW_GPU_NVLINK(id, channels, messages, basis) {id, {channels, messages, true, basis}},
#include "gpu/communicators.def"
#undef SPW_GPU_NVLINK
#undef PUBLISHED
#undef GUESS
};

static struct channels channels_of(const struct spw_gpu_profile *profile)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].id, profile->id) == 0) {
            return rows[i].channels;
        }
    }
    return no_nvlink;
}

/* A tree of two ranks uses the connections of the ring. */
static uint32_t tree_mib(const struct channels *channels, int ranks)
{
    return ranks > 2 ? (uint32_t)channels->collective * CONNECTION : 0;
}

static uint32_t ring_mib(const struct channels *channels, int ranks)
{
    return ranks > 1 ? (uint32_t)channels->collective * CONNECTION : 0;
}

static uint32_t multicast_mib(const struct channels *channels,
                              const struct spw_gpu_profile *profile, int ranks)
{
    int heads = ranks < SPW_GPU_IN_MACHINE ? ranks : SPW_GPU_IN_MACHINE;

    return channels->nvlink && profile->major >= 9 && ranks > 2 ? (uint32_t)(MULTICAST * heads) : 0;
}

/* The bound assumes that the communicator connects all ranks at once. */
static struct spw_gpu_connection_need
need_of_creation(const struct channels *channels, const struct spw_gpu_profile *profile, int ranks)
{
    uint32_t shared = channels->nvlink ? SHARED_NVLINK : SHARED_PCIE;
    uint32_t mib = (uint32_t)channels->message * CHANNEL;

    return (struct spw_gpu_connection_need){
        .mib = mib,
        .most_mib = mib + (uint32_t)channels->message * shared + ring_mib(channels, ranks) +
                    tree_mib(channels, ranks) + multicast_mib(channels, profile, ranks),
    };
}

struct spw_gpu_connection_need spw_gpu_connection_need(const struct spw_gpu_profile *profile,
                                                       enum spw_gpu_connection connection,
                                                       int ranks)
{
    struct channels channels = channels_of(profile);
    struct spw_gpu_connection_need need = {0};

    switch (connection) {
    case SPW_GPU_COMMUNICATOR:
        return need_of_creation(&channels, profile, ranks);
    case SPW_GPU_RING:
        need.mib = ring_mib(&channels, ranks);
        break;
    case SPW_GPU_TREE:
        need.mib = tree_mib(&channels, ranks);
        break;
    case SPW_GPU_PEER:
        need.mib = (uint32_t)channels.message * MESSAGE;
        need.most_mib = need.mib;
        break;
    case SPW_GPU_CONNECTIONS:
        break;
    }
    return need;
}

bool spw_gpu_channels_are_published(const struct spw_gpu_profile *profile)
{
    return channels_of(profile).published;
}
