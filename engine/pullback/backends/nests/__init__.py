"""Nests: how the nodes of a graph become kernels, whatever machine runs them.

graph -> views        values that are the memory of another value                 views.py
-> stores       stores that write where their array lies                    stores.py
-> fusing       elementwise and reducing nodes grouped into loop nests      fusion.py
-> merging      nests that were begun apart put together                    merging.py
-> sinking      values computed in the nest that reads them                 sinking.py
-> rows         nests that reduce rows, with those that read the results      rows.py
-> joining      parts of a joined array computed where they belong          joins_in_place.py
-> moving       joins and stores as nests that move elements                data_movement.py
-> nesting      a group of nodes as a `Nest`: reads, steps, writes, sums    nest_building.py, nest.py, axes.py

From fusing to joining these are passes over kernels; each machine names its own in `passes/pipeline.py`, `kernel_passes.py` runs them, and
`kernel_listing.py` prints what they give.
"""
