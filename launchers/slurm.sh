#!/usr/bin/env bash
# Run a command with a Slurm cluster of one node, this machine: ./slurm.sh COMMAND [ARGUMENTS]
# Installs nothing. Everything it writes is in a temporary folder; what it started is stopped when the command ends.
# SLURM_SH_CPUS=N: the node's CPUs (this machine's); SLURM_SH_KEEP=1: keep the folder, with the logs.
set -euo pipefail

PATH=$PATH:/usr/sbin:/sbin
(( $# )) || { echo "slurm.sh: give a command to run" >&2; exit 2; }
missing=()
for tool in munged munge slurmctld slurmd sinfo scontrol srun sbatch; do
    command -v "$tool" > /dev/null || missing+=("$tool")
done
if (( ${#missing[@]} )); then
    echo "slurm.sh: Slurm is not installed (no ${missing[*]}): apt-get install slurm-wlm munge" >&2
    exit 3
fi
(( EUID == 0 )) || { echo "slurm.sh: slurmd starts jobs as their users: run it as root" >&2; exit 3; }

base=$(mktemp -d "${TMPDIR:-/tmp}/slurm.XXXXXX")
chmod 755 "$base"  # munged asks that every folder above its socket can be searched by all
mkdir -m 755 "$base"/{munge,state,spool,log,bin}
started=()

stop() {
    local status=$1 pid i
    trap - EXIT
    trap '' INT TERM HUP
    if [[ -f $base/slurmctld.started ]]; then
        scancel --partition=main 2> /dev/null
        for ((i = 0; i < 75; i++)); do  # a job that ignores SIGTERM is killed after KillWait, 5 seconds
            [[ -n $(squeue -h 2> /dev/null) ]] || break
            sleep 0.2
        done
    fi
    for ((i = ${#started[@]} - 1; i >= 0; i--)); do kill "${started[i]}" 2> /dev/null; done
    for pid in "${started[@]}"; do
        for ((i = 0; i < 50; i++)); do kill -0 "$pid" 2> /dev/null || break; sleep 0.1; done
        kill -9 "$pid" 2> /dev/null
        wait "$pid" 2> /dev/null
    done
    if [[ ${SLURM_SH_KEEP:-} ]]; then echo "slurm.sh: kept $base" >&2; else rm -rf "$base"; fi
    exit "$status"
}

# The terminal sends Ctrl-C to the command too; what is sent to this script alone is handed on.
command=
interrupted() {
    local status=$1 signal=$2 i
    trap '' INT TERM HUP
    if [[ $command ]]; then
        [[ $signal == INT ]] || kill -"$signal" "$command" 2> /dev/null || true
        for ((i = 0; i < 50; i++)); do kill -0 "$command" 2> /dev/null || break; sleep 0.1; done
        kill -TERM "$command" 2> /dev/null || true
    fi
    exit "$status"
}
trap 'status=$?; set +e; stop "$status"' EXIT
trap 'interrupted 130 INT' INT
trap 'interrupted 143 TERM' TERM
trap 'interrupted 129 HUP' HUP

fail() {
    echo "slurm.sh: $1" >&2
    tail -n 15 "$base"/log/*.log >&2 || true
    exit 4
}

# until SECONDS COMMAND: wait until the command succeeds
until_() {
    local end=$((SECONDS + $1)); shift
    while ! "$@" > /dev/null 2>&1; do
        (( SECONDS < end )) || return 1
        sleep 0.2
    done
}

# Ports of our own, so that another Slurm on this machine (or a second call at once) is left alone.
free_ports() {
    local port found=()
    for ((port = 20000 + RANDOM % 20000; ${#found[@]} < 2; port++)); do
        (exec 3<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null || found+=("$port")
    done
    echo "${found[@]}"
}
read -r controller_port node_port < <(free_ports)

node=$(hostname -s 2> /dev/null || hostname)
cpus=${SLURM_SH_CPUS:-$(nproc)}
memory=$(awk '/^MemTotal/ {print int($2 / 1024 * 0.9)}' /proc/meminfo)

# A key and a socket of our own: a munged of the system, if there is one, goes on as it was.
head -c 1024 /dev/urandom > "$base/munge/key"
chmod 600 "$base/munge/key"
socket=$base/munge/socket

cat > "$base/slurm.conf" <<CONF
ClusterName=local
SlurmctldHost=$node(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$socket
CredType=cred/munge
SlurmctldPort=$controller_port
SlurmdPort=$node_port
StateSaveLocation=$base/state
SlurmdSpoolDir=$base/spool
SlurmctldPidFile=$base/slurmctld.pid
SlurmdPidFile=$base/slurmd.pid
SlurmctldLogFile=$base/log/slurmctld.log
SlurmdLogFile=$base/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=5,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmctldParameters=idle_on_node_suspend
InactiveLimit=0
KillWait=5
MinJobAge=86400
Waittime=0
NodeName=$node NodeAddr=127.0.0.1 CPUs=$cpus RealMemory=$memory State=UNKNOWN
PartitionName=main Nodes=$node Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$base/slurm.conf

# sacct needs an accounting database; without one submitit cannot learn that a job was killed, and waits for ever.
# This one answers submitit's call (-o JobID,State,NodeList --parsable2 -j ID ...) from the controller's memory.
cat > "$base/bin/sacct" <<'SACCT'
#!/bin/bash
echo 'JobID|State|NodeList'
while (( $# )); do
    if [[ $1 == -j ]]; then
        scontrol show job -o "${2%%[_.]*}" 2> /dev/null
        shift
    fi
    shift
done | awk '{
    delete field
    for (i = 1; i <= NF; i++) { at = index($i, "="); field[substr($i, 1, at - 1)] = substr($i, at + 1) }
    id = field["ArrayJobId"] == "" ? field["JobId"] : field["ArrayJobId"] "_" field["ArrayTaskId"]
    if (id ~ /_.*[-,]/) { sub("_", "_[", id); id = id "]" }
    print id "|" field["JobState"] "|" field["NodeList"]
}'
SACCT
chmod 755 "$base/bin/sacct"
export PATH=$base/bin:$PATH

# Each in a session of its own, out of reach of Ctrl-C: the jobs are stopped first.
setsid munged --foreground --force --num-threads=2 --key-file="$base/munge/key" --socket="$socket" \
    --pid-file="$base/munge/pid" --log-file="$base/log/munged.log" --seed-file="$base/munge/seed" \
    > "$base/log/munged.out.log" 2>&1 &
started+=($!)
until_ 10 munge --socket="$socket" --no-input || fail "munged did not start"

setsid slurmctld -D -c > "$base/log/slurmctld.out.log" 2>&1 &
started+=($!)
touch "$base/slurmctld.started"
setsid slurmd -D -N "$node" > "$base/log/slurmd.out.log" 2>&1 &
started+=($!)

idle() { [[ $(sinfo -h -o %t) == idle ]]; }
until_ 60 idle || fail "the node is not idle after 60 seconds: $(sinfo -h -o '%t %E' 2>&1)"

# In the background, so that the traps are run at once; with the terminal's input, and open to Ctrl-C, all the same.
env --default-signal=INT,QUIT -- "$@" <&0 &
command=$!
status=0
wait "$command" || status=$?
command=
exit "$status"
