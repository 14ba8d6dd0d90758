"""The sandbox: the part of the machine that builds and measured code of a commit can reach, and may take.

| file       | what                                                                 |
|------------|----------------------------------------------------------------------|
| isolation  | the levels `none`, `user` and `sandbox`, tried; a job in one of them |
| bubblewrap | a process's view of the machine, as a command of bwrap(1)            |
| places     | the parts of this machine that are in every view                     |
| users      | the user that jobs of an agent of root run as                        |
| proxy      | the network of builds: the agent's proxy to listed hosts              |
| store      | what an agent keeps of the caches of jobs, sealed                     |
| groups     | control groups of jobs, where the machine lets the agent make some   |
| limits     | how much of the machine a job may take, and a watch over it          |
"""
