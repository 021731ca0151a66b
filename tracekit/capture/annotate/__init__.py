"""Running an unmodified Python script or module with NVTX ranges round its phases."""
