#!/usr/bin/env bash
# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# scripts/examples/slurm-array.sh on a Slurm of its own on this machine: a controller and one node,
# in the foreground, ended with the test. Usage: slurm_loopback_test.sh BIN SCRIPT
set -euo pipefail
skip() {
  echo "skipped: $*"
  exit 77
}
for tool in slurmctld slurmd munged mungekey sbatch squeue; do
  [[ -x $(PATH=$PATH:/usr/sbin command -v $tool) ]] || skip "$tool is not installed"
done
((EUID == 0)) || skip "slurmd needs root"
export PATH=$1:$PATH:/usr/sbin
script=$(realpath "$2")
source "$(dirname "$0")/example_cases.sh"
work=$(mktemp -d)
pids=()
finish() {
  ((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
chmod 755 "$work"
cd "$work"
mkdir state spool munge
chmod 700 munge
make_example_cases

mungekey --create --keyfile "$work/munge/key"
munged --foreground --force --socket="$work/munge/socket" --key-file="$work/munge/key" \
  --log-file="$work/munge/log" --pid-file="$work/munge/pid" --seed-file="$work/munge/seed" &
pids+=($!)
host=$(hostname -s)
port=$((20000 + RANDOM % 20000))
cat >slurm.conf <<CONF
ClusterName=larch
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$work/slurm.conf
slurmctld -D >ctld.log 2>&1 &
pids+=($!)
slurmd -D >slurmd.log 2>&1 &
pids+=($!)

# wait_for SECONDS COMMAND...: until the command succeeds; the test's own bound against hanging.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || return 1
    sleep 0.5
  done
}
node_is_up() { sinfo --noheader --format %T | grep -q idle; }
nothing_runs() { [[ -z $(squeue --noheader 2>/dev/null) ]] && squeue --noheader >/dev/null; }
if ! wait_for 60 node_is_up; then
  tail -n 5 ctld.log slurmd.log
  skip "Slurm does not start here"
fi
sbatch --array=1-2 --cpus-per-task=1 --mem=0 --export=ALL "$script" m.pbt cases.tsv out
wait_for 120 nothing_runs || fail_test "the tasks do not end: $(squeue)"
for case in 1 2; do
  cmp "wanted_$case.nii.gz" "out/a.$case.nii.gz" || fail_test "$(cat pbt-detect-*.log)"
done
[[ $(grep -c '^a\.' out/status.tsv) == 2 ]] || fail_test "$(cat out/status.tsv)"
