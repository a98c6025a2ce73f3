"""A Slurm cluster of one node in a test's folder: its own munged, slurmctld and slurmd, on loopback, with fake GPUs as generic
resources."""

import contextlib
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess

from documented import shell
from harness import expect, skip, until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "srun")
# cred_expire is short: a requeued job waits until the credentials of its first run have expired, by default two minutes.
CONFIGURATION = """ClusterName=warploom
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld_port}
SlurmdPort={slurmd_port}
AuthType=auth/munge
AuthInfo=socket={root}/munge/socket,cred_expire=10
CredType=cred/munge
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
ReturnToService=2
SlurmdTimeout=30
KillWait=5
JobRequeue=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=1000 Gres=gpu:4 State=UNKNOWN
PartitionName=low Nodes=ALL Default=YES MaxTime=10:00 PriorityTier=1 PreemptMode=REQUEUE
PartitionName=high Nodes=ALL MaxTime=10:00 PriorityTier=10 PreemptMode=OFF
"""
GPUS = "NodeName={host} Name=gpu File={root}/gpu[0-3] Flags=nvidia_gpu_env,amd_gpu_env\n"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Slurm:
    """The cluster, as a context manager: leaving it ends the jobs and the daemons."""

    def __init__(self, scratch, cpus=4):
        missing = [name for name in PROGRAMS if shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") is None]
        if missing:
            skip(f"Slurm is not here ({', '.join(missing)}); `make test-cluster` installs it")
        self.scratch, self.root = scratch, scratch.root / "slurm"
        self.host = socket.gethostname().split(".")[0]
        self.environment = dict(scratch.environment, SLURM_CONF=str(self.root / "slurm.conf"))
        for name in ("munge", "state", "spool"):
            (self.root / name).mkdir(parents=True)
        facts = {
            "root": self.root,
            "host": self.host,
            "user": pwd.getpwuid(os.getuid()).pw_name,
            "cpus": cpus,
            "ctld_port": free_port(),
            "slurmd_port": free_port(),
        }
        (self.root / "slurm.conf").write_text(CONFIGURATION.format(**facts))
        (self.root / "gres.conf").write_text(GPUS.format(**facts))
        for number in range(4):
            # The fake GPUs are devices like /dev/null, since Slurm accepts only character devices as generic resources.
            os.mknod(self.root / f"gpu{number}", 0o600 | 0o020000, os.makedev(1, 3))
        key = self.root / "munge/key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        os.chmod(self.root, 0o755)
        os.chmod(self.root / "munge", 0o755)
        self.daemons = {}

    def __enter__(self):
        munge = self.root / "munge"
        self.daemon(
            "munged", "--foreground", f"--key-file={munge}/key", f"--socket={munge}/socket", f"--pid-file={munge}/pid",
            f"--log-file={munge}/log", f"--seed-file={munge}/seed", "--num-threads=2", "--force",
        )
        until(lambda: (munge / "socket").exists(), 30, "munged answers")
        self.start_controller()
        self.daemon("slurmd", "-D", "-N", self.host)
        until(lambda: "idle" in self.ask("sinfo", "--noheader", "--format=%t"), 60, "the node is idle")
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            print(self.ask("squeue", "--states=all", check=False), self.ask("sinfo", "--long", check=False))
        with contextlib.suppress(Exception):
            self.ask("scancel", "--user", pwd.getpwuid(os.getuid()).pw_name)
            self.ask("scancel", "--signal=KILL", "--full", "--user", pwd.getpwuid(os.getuid()).pw_name)
            until(lambda: not self.ask("squeue", "--noheader"), 20, "all jobs have ended")
        for process in self.daemons.values():
            process.kill()
            process.wait(30)
        if kind is not None:
            for log in [*self.root.glob("*.log"), *self.scratch.root.glob("warploom-*.log")]:
                print(f"---- {log.name}\n{log.read_text(errors='replace')[-4000:]}")

    def daemon(self, name, *arguments):
        path = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
        with open(self.root / f"{name}.out.log", "ab") as log:
            self.daemons[name] = subprocess.Popen(
                [path, *arguments], stdout=log, stderr=log, env=self.environment, cwd=self.root
            )

    def start_controller(self):
        self.daemon("slurmctld", "-D", "-i")
        until(lambda: "UP" in self.ask("scontrol", "ping", check=False), 30, "slurmctld answers")

    def restart_controller(self):
        """Ends slurmctld and starts it again. slurmctld gets SIGTERM and not SIGKILL, so that it saves its state."""
        process = self.daemons["slurmctld"]
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        self.start_controller()

    def ask(self, *command, check=True, **options):
        done = subprocess.run(
            list(map(str, command)), env=self.environment, cwd=self.scratch.root, capture_output=True, text=True, timeout=60,
            **options,
        )
        expect(not check or done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def submit(self, *arguments, **variables):
        """Submits a job and returns its number."""
        export = ",".join(["ALL", *(f"{name}={value}" for name, value in variables.items())])
        return self.ask("sbatch", "--parsable", f"--export={export}", *arguments).strip().split(";")[0]

    def submit_as_documented(self, command, **variables):
        """Runs an sbatch command of deploy/README.md with the given environment variables, and returns the job's number."""
        done = shell(self.scratch, command, dict(self.environment, **{name: str(value) for name, value in variables.items()}))
        return re.search(r"Submitted batch job (\d+)", done.stdout)[1]

    def states(self, job):
        """Returns the states of the tasks of a job that Slurm still knows, such as {"3_0": "RUNNING"}."""
        rows = self.ask("squeue", "--noheader", "--array", "--states=all", f"--jobs={job}", "--format=%i %T", check=False)
        return dict(row.split() for row in rows.splitlines() if row.strip())
