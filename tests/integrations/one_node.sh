#!/usr/bin/env bash
# usage: one_node.sh COMMAND...
#
# Runs a command with a Slurm of one node, in the namespaces that unshare has made: they end with
# it. Anybody who reaches its ports may start jobs, so it must have a network of its own.
set -e
folder=$PWD/slurm
mkdir -p "$folder/state" "$folder/spool"
export SLURM_CONF=$folder/slurm.conf
name=$(hostname -s)
cat > "$SLURM_CONF" <<END
ClusterName=test
SlurmctldHost=$name(127.0.0.1)
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=$name NodeAddr=127.0.0.1 CPUs=2
PartitionName=main Nodes=$name Default=YES State=UP
END
slurmctld -D > "$folder/slurmctld.log" 2>&1 &
slurmd -D > "$folder/slurmd.log" 2>&1 &
for _ in $(seq 50); do
    kill -0 %1 && kill -0 %2 || break
    if sinfo --noheader 2>/dev/null | grep -q ' idle '; then
        "$@"
        exit
    fi
    sleep 0.2
done
cat "$folder"/*.log >&2
exit 1
