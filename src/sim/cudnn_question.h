/* The form of the questions that the simulated cuDNN asks the launcher. A question is for the
 * engines that NVIDIA's cuDNN would choose for a graph on a card, and for the workspace of each.
 *
 * The launcher listens on an abstract socket, whose name is in SPILLWAY_CUDNN_SOCKET. A question is
 * a header and its content: the path of NVIDIA's library and the properties of the device as JSON,
 * each ending with a 0 byte, and the descriptor of the heuristics. An answer is a header and an
 * array of engines, in cuDNN's order. It is empty if cuDNN gives no answer.
 *
 * A descriptor is a struct sim_cudnn_node, followed by its attributes. An attribute is a struct
 * sim_cudnn_leaf, followed by its descriptors or, for other types, by its elements. Nothing is
 * aligned. Both sides run on the same machine, and come from the same build. */
#pragma once

#include <stdint.h>

#define SIM_CUDNN_SOCKET "SPILLWAY_CUDNN_SOCKET"

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
