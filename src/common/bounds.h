/* Limits that size the tables of several layers. */
#pragma once

enum {
    SPW_DEVICES_MAX = 64,    /* GPUs of a machine */
    SPW_HOST_NODES_MAX = 16, /* NUMA nodes of a machine */
};
