"""Programs that measure the toolchain beside its peers. `bench/run.py` runs them; nothing here ships."""
