"""Projects: the configuration of a repository (`pullback.toml`), and the preparation of its commits for measuring.

| file          | what                                                                |
|---------------|---------------------------------------------------------------------|
| configuration | `pullback.toml`, read and checked                                   |
| functions     | functions that can be differentiated, found by reading              |
| detection     | what a repository shows of how it is built                          |
| drafts        | the files that `pullback init` writes, as text                      |
| scaffold      | a workload that is tried before it is left there                    |
| definitions   | the `pullback.toml` that a commit is measured by                    |
| git           | git, asked without running anything of a repository                 |
| folder_cache  | folders that are made once and kept for the next time               |
| checkouts     | the files of a commit, in a folder of their own                     |
| requirements  | what requirements files include, and install of the commit itself   |
| environments  | a Python with what the requirements of a commit name                |
| outside       | what a build changed outside of its commit's folder                 |
| subjects      | both together: what a worker imports to measure a commit            |
"""
