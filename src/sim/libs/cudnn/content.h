/* The content of a question for NVIDIA's cuDNN (sim/cudnn_question.h). No locking. */
#pragma once

#include "sim/cudnn_question.h"
#include "sim/libs/cudnn/descriptor.h"

struct sim_cudnn_content {
    unsigned char *bytes; /* room for SIM_CUDNN_MOST; NULL: there was no memory */
    size_t count;
    bool complete; /* all of it had room */
};

/* Makes the content of a question to the library at a path, about a heuristics descriptor and the
 * current device. The caller frees ret_content->bytes, also on failure. False if there is no
 * memory, the content is too large, or a descriptor is incomplete. */
bool sim_cudnn_content_make(const char *library, const struct sim_cudnn_descriptor *heuristics,
                            struct sim_cudnn_content *ret_content);
