"""Run a group of programs between fences; the name of each is printed before it runs.

python -m tests.engine.native.fences rules 0 2      the first half of them
python -m tests.engine.native.fences sizes --sizes 20
python -m tests.engine.native.fences workloads --cut    with kernels cut into small blocks, on three threads
"""

import argparse
import itertools

from tests.engine.native.fences import running

running.install()

from tests.engine.native import cutting  # noqa: E402 - what they import makes plans
from tests.engine.native.fences import subjects  # noqa: E402

import pullback as pb  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("group", choices=subjects.GROUPS)
parser.add_argument("part", type=int, nargs="?", default=0)
parser.add_argument("of", type=int, nargs="?", default=1)
parser.add_argument("--sizes", type=int, default=2)
parser.add_argument("--cut", action="store_true")
chosen = parser.parse_args()
if chosen.cut:
    cutting.cut_everything()
    pb.threads(3)
for subject in itertools.islice(subjects.GROUPS[chosen.group](chosen.sizes), chosen.part, None, chosen.of):
    print(subject.name, flush=True)  # noqa: T201 - its parent reads it
    subject.run()
print("done", next(running.count), flush=True)  # noqa: T201 - as above
