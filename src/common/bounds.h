/* Limits that determine the sizes of tables in several layers. */
#pragma once

enum {
    SPW_DEVICES_MAX = 64,    /* most GPUs of a machine */
    SPW_HOST_NODES_MAX = 16, /* most NUMA nodes of a machine */
};
