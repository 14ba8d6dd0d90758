"""Projects: what `pullback.toml` says of a repository, and its commits made ready to be measured.

| file          | what                                                                |
|---------------|---------------------------------------------------------------------|
| configuration | `pullback.toml`, read and checked                                   |
| definitions   | the `pullback.toml` that a commit is measured by                    |
| repositories  | git, asked without running anything of a repository                 |
| kept          | folders that are made once and kept for the next time               |
| checkouts     | the files of a commit, in a folder of their own                     |
| environments  | a Python with what the requirements of a commit name                |
| subjects      | both together: what a worker imports to measure a commit            |
"""
