/* Names and types of attributes in cuDNN's backend interface, as the stub knows them. */
#pragma once

enum {
    STUB_INT64 = 3,
    STUB_DESCRIPTOR = 15,
    STUB_CHAR = 24,
    STUB_RESULTS = 202,
    STUB_ENGINE = 300,
    STUB_INDEX = 1301,
    STUB_NUMERICAL = 1303,
    STUB_BEHAVIOR = 1305,
    STUB_REFUSED = 666, /* no descriptor has it */
};

/* The number of descriptors that exist. */
int stub_live(void);
