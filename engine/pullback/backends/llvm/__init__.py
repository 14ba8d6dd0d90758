"""LLVM IR: its writer, and elementary functions written with it, for whatever machine LLVM has a target for."""
