"""LLVM IR as text: a module, its functions, and values in registers."""
