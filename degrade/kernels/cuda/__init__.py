"""Triton bodies of the custom operators, for CUDA.  Imported when the first CUDA tensor arrives: not every platform has Triton."""
