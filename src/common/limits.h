/* Limits that several parts of the project share. */
#pragma once

enum {
    SPW_MAX_DEVICES = 64,    /* GPUs of a machine */
    SPW_MAX_HOST_NODES = 16, /* NUMA nodes of a machine */
};
