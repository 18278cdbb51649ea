#!/bin/sh
# usage: enter.sh ROOT FOLDER COMMAND...
#
# Runs a command in another root, as root of namespaces that unshare has made (--map-root-user
# --mount --pid). FOLDER is /tmp there. Nothing stays mounted.
set -e
root=$1 folder=$2
shift 2
mount --bind "$folder" "$root/tmp"
mount -t proc proc "$root/proc" 2>/dev/null || mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
exec chroot "$root" "$@"
