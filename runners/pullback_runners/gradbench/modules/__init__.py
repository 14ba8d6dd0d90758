"""GradBench's modules: each file maps one eval's JSON to the arrays of a workload and back, and holds no mathematics."""
