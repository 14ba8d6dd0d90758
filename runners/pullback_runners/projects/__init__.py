"""Projects: what `pullback.toml` says of a repository, and its commits made ready to be measured.

| file          | what                                                                |
|---------------|---------------------------------------------------------------------|
| configuration | `pullback.toml`, read and checked                                   |
| checkouts     | the files of a commit, in a folder of their own                     |
| environments  | a Python with what the requirements of a commit name                |
| listing       | the cases of a subject, listed by its own interpreter                 |
| subjects      | both together: what a worker imports to measure a commit            |
"""
