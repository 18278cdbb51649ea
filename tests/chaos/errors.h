/* Tells clean errors from bad ones, and remembers the bad ones. Thread-safe. */
#pragma once

#include <cuda.h>
#include <stdbool.h>

/* Allows a CUresult, beside CUDA_SUCCESS. */
void errors_allow(int code);

/* True on success. Else the error is a finding, unless it is allowed. */
bool ok(CUresult result, const char *call);

/* The same for a call that may also answer `other`. */
bool ok_or(CUresult result, CUresult other, const char *call);

/* A finding: writes a line. */
void finding(const char *format, ...) __attribute__((format(printf, 1, 2)));

unsigned int errors_findings(void);
unsigned int errors_allowed(void);
