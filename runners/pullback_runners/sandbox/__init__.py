"""The sandbox: what builds and measured code of a commit can reach on the machine, and how much they may use.

| file       | what                                                                 |
|------------|----------------------------------------------------------------------|
| isolation  | the levels `none`, `user` and `sandbox`, tested; a job in one of them |
| bubblewrap | the command of bwrap(1) for a process's view of the machine         |
| places     | the paths of this machine that are in every view                     |
| users      | the user that runs the jobs of an agent of root                      |
| proxy      | the network of builds: a proxy of the agent to listed hosts          |
| store      | the cached environments and builds of jobs, sealed                   |
| groups     | control groups of jobs, where the machine lets the agent make some   |
| limits     | the resource limits of a job, and the watch over them                |
"""
