#!/usr/bin/env bash
# usage: bare_root.sh FOLDER COMMAND... ; [COMMAND... ;]...
#
# Runs commands in a root like that of a container, without any capability, in the namespaces that
# unshare has made. It has this machine's programs and libraries, read-only; FOLDER/bundle is
# /opt/spillway, and FOLDER/train.py is /app/train.py. The results stay in FOLDER/results.
set -e
folder=$1
shift
root=$folder/root
mkdir -p "$root" "$folder/results"
mount -t tmpfs none "$root"
mkdir -p "$root"/{usr,etc,proc,dev,tmp,app/bin,results,spillway,opt/spillway}
for name in bin sbin lib lib64; do
    [ ! -L "/$name" ] || ln -s "$(readlink "/$name")" "$root/$name"
done
mount --rbind -o ro /usr "$root/usr"
cp /etc/ld.so.cache /etc/passwd "$root/etc"
mount -t proc none "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind "$folder/results" "$root/results"
mount --bind -o ro "$folder/bundle" "$root/opt/spillway"
cp "$folder/train.py" "$root/app"
ln -s "$PYTHON" "$root/app/bin/python"
words=()
for word; do
    if [ "$word" != ";" ]; then
        words+=("$word")
        continue
    fi
    chroot "$root" sh -c 'cd /app && exec setpriv --bounding-set=-all --inh-caps=-all "$@"' sh \
        "${words[@]}"
    words=()
done
