/* The form of the questions that the simulated cuDNN asks the launcher. A question is for the
 * engines that NVIDIA's cuDNN would choose for a graph on a card, and for the workspace of each.
 *
 * The launcher listens on an abstract socket, whose name is in SPILLWAY_CUDNN_SOCKET. A question is
 * a header and its content:
 *
 *     the path of NVIDIA's library, and a 0 byte
 *     the value of SIM_CUDNN_TF32 in the program's environment (empty: not set), and a 0 byte
 *     the properties of the device as JSON, and a 0 byte
 *     the descriptor of the heuristics
 *
 * An answer is a header and an array of engines, in cuDNN's order. It is empty if cuDNN gives no
 * answer.
 *
 * A descriptor is a struct sim_cudnn_node, followed by its attributes. An attribute is a struct
 * sim_cudnn_leaf, followed by its descriptors or, for other types, by its elements. Nothing is
 * aligned. Both sides run on the same machine, and come from the same build. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define SIM_CUDNN_SOCKET "SPILLWAY_CUDNN_SOCKET"
/* The path of a library that is asked in place of the program's. Not set: the program's. */
#define SIM_CUDNN_LIBRARY "SPILLWAY_CUDNN_LIBRARY"
/* cuDNN reads it, and chooses other engines. */
#define SIM_CUDNN_TF32 "NVIDIA_TF32_OVERRIDE"

enum {
    SIM_CUDNN_MAGIC = 0x4e4e4455,
    SIM_CUDNN_MOST = 256 << 10, /* bytes of a content */
    SIM_CUDNN_ENGINES = 1024,   /* in an answer; cuDNN 9.19 names about 40 */
};

struct sim_cudnn_header {
    uint32_t magic;
    uint32_t bytes; /* of the content */
};

struct sim_cudnn_node {
    int32_t kind; /* cudnnBackendDescriptorType_t */
    int32_t count;
};

struct sim_cudnn_leaf {
    int32_t name; /* cudnnBackendAttributeName_t */
    int32_t type; /* cudnnBackendAttributeType_t */
    int32_t count;
    int32_t bytes; /* of all elements; 0: they are descriptors */
};

/* An engine configuration. Notes are sets: bit N stands for the note with the number N. */
struct sim_cudnn_engine {
    int64_t index; /* the engine's global index */
    int64_t workspace_bytes;
    uint32_t numerical_notes, behavior_notes;
};

/* Send and receive exactly `bytes`. Signals interrupt calls that have a time limit, and are no
 * reason to give up. False on an error, at the end of the connection, and after the time limit. */
static inline bool sim_cudnn_send(int connection, const void *from, size_t bytes)
{
    const char *at = from;

    while (bytes > 0) {
        ssize_t sent = send(connection, at, bytes, MSG_NOSIGNAL);

        if (sent < 0 && errno != EINTR) {
            return false;
        }
        at += sent > 0 ? sent : 0;
        bytes -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

static inline bool sim_cudnn_receive(int connection, void *to, size_t bytes)
{
    char *at = to;

    while (bytes > 0) {
        ssize_t received = recv(connection, at, bytes, 0);

        if (received == 0 || (received < 0 && errno != EINTR)) {
            return false;
        }
        at += received > 0 ? received : 0;
        bytes -= received > 0 ? (size_t)received : 0;
    }
    return true;
}
