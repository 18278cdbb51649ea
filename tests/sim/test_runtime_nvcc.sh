#!/bin/sh
# A program compiled by NVIDIA's own compiler runs on the simulated GPU, with the legacy and with
# the per-thread default stream.
#
#     test_runtime_nvcc.sh SIM_DIR PROGRAM.cu WORK_DIR
#
# Exit status 77 (skipped) without nvcc 13 or the host compiler it needs.
set -eu

sim=$1 program=$2 work=$3
nvcc=$(command -v nvcc || true)
[ -n "$nvcc" ] || nvcc=/usr/local/cuda/bin/nvcc
if ! [ -x "$nvcc" ] || ! "$nvcc" --version | grep -q 'release 13\.'; then
    echo "nvcc 13 not found"
    exit 77
fi
if ! command -v g++ >/dev/null; then
    echo "g++ not found"
    exit 77
fi

mkdir -p "$work"
for stream in legacy per-thread; do
    echo "default stream: $stream"
    "$nvcc" -cudart shared --default-stream="$stream" -o "$work/program" "$program"
    env LD_LIBRARY_PATH="$sim" "$work/program"
done
