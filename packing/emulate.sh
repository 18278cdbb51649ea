#!/bin/sh
# usage: emulate.sh PROGRAM [ARGUMENT...]
#
# Runs a program of aarch64, and all that it starts, with qemu: in the root .aarch64/run, in
# namespaces of its own. This tree, /tmp and the machine's /proc, /sys and /dev are there too.
# Nothing stays mounted, and the machine's own table of binary formats stays as it is. Under qemu,
# only runs the program.
set -e
[ "$(uname -m)" != aarch64 ] || exec "$@"
tree=$(cd "$(dirname "$0")/.." && pwd)
root=$tree/.aarch64/run
if [ "$1" != --inside ]; then
    exec unshare --user --map-root-user --mount -- "$0" --inside "$PWD" "$@"
fi
folder=$2
shift 2

formats=/proc/sys/fs/binfmt_misc
mount -t binfmt_misc binfmt_misc $formats
# By the first 20 bytes of a program: ELF, 64 bits, little-endian, for aarch64. The root has no
# qemu, so it is opened now (F). It keeps the name by which a program is called (P).
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
printf '%s' ":aarch64:M::$magic:$mask:$(command -v qemu-aarch64-static):FP" > $formats/register
for shared in "$tree" /proc /sys /dev /tmp; do
    mkdir -p "$root$shared"
    mount --rbind "$shared" "$root$shared"
done
exec chroot "$root" /bin/sh -c 'cd "$0" && exec "$@"' "$folder" "$@"
